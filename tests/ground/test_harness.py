from concurrent.futures import ThreadPoolExecutor

import pytest
from django.contrib.auth.models import Group, User
from django.db import connection


@pytest.mark.django_db(transaction=True)
@pytest.mark.parametrize("round_", [1, 2])
def test_each_test_that_commits_starts_from_the_migrations(round_, owner):
    assert not User.objects.exists()
    User.objects.create_user("alice")
    Group.objects.create(name=f"round {round_}")
    assert owner.execute("SELECT count(*) FROM auth_user").fetchone() == (1,)


@pytest.mark.django_db
def test_tests_run_as_the_serving_role():
    with connection.cursor() as cursor:
        cursor.execute("SELECT current_user")
        assert cursor.fetchone() == ("lychd_serving",)


@pytest.mark.django_db(transaction=True)
def test_a_thread_of_a_test_is_the_serving_role_too():
    def ask() -> str:
        try:
            with connection.cursor() as cursor:
                cursor.execute("SELECT current_user")
                return str(cursor.fetchone()[0])
        finally:
            connection.close()

    with ThreadPoolExecutor() as pool:
        assert pool.submit(ask).result() == "lychd_serving"
