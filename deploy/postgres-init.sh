#!/usr/bin/env bash
# Run once by the database's image, as the superuser: the two roles, the extensions, the database of the owner.
set -euo pipefail

psql --set ON_ERROR_STOP=1 --username "$POSTGRES_USER" --dbname postgres \
    --set owner_password="$LYCHD_OWNER_PASSWORD" --set serving_password="$LYCHD_SERVING_PASSWORD" <<'SQL'
CREATE ROLE lychd_owner LOGIN NOSUPERUSER NOCREATEROLE CREATEDB PASSWORD :'owner_password';
CREATE ROLE lychd_serving LOGIN NOSUPERUSER NOCREATEROLE NOCREATEDB PASSWORD :'serving_password';
ALTER ROLE lychd_serving SET lock_timeout = '2s';
GRANT lychd_serving TO lychd_owner;
CREATE DATABASE lychd OWNER lychd_owner TEMPLATE template0 ENCODING 'UTF8'
    LOCALE_PROVIDER builtin BUILTIN_LOCALE 'C.UTF-8' LOCALE 'C.UTF-8';
SQL

psql --set ON_ERROR_STOP=1 --username "$POSTGRES_USER" --dbname lychd <<'SQL'
CREATE EXTENSION vector;
CREATE EXTENSION pg_trgm;
SQL
