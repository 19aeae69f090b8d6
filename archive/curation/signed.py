"""Who is signed in: the user of a session, and the subject that stands for them, found in one look."""

from typing import Any

from django.contrib.auth import get_user_model
from django.contrib.auth.backends import ModelBackend
from django.db.models import OuterRef, Subquery

from archive.authority import acts_now, subject_of_user
from archive.models import Principal


class SignedIn(ModelBackend):
    """Django's own sign-in; whoever it finds for a session comes with the subject, if an active principal has one."""

    def get_user(self, user_id: int) -> Any:
        acting = Principal.objects.filter(user_id=OuterRef("pk"), active=True)
        users = get_user_model()._default_manager.annotate(
            acts_as=Subquery(acting.values("subject")[:1]), principal=Subquery(acting.values("id")[:1])
        )
        user = users.filter(pk=user_id).first()
        if user is None or not self.user_can_authenticate(user):
            return None
        acts_now(user.principal)
        return user


def subject_of(user: Any) -> str | None:
    """The subject of a signed-in user (R-L-014); another backend than ours has not looked for it."""
    return user.acts_as if hasattr(user, "acts_as") else subject_of_user(user.pk)
