#!/usr/bin/env bash
# Creates the missing files in secrets/ and keeps the existing ones: without its master key, a database cannot be read.
set -euo pipefail
cd "$(dirname "$0")"
umask 077
mkdir -p secrets
cd secrets

make() { [ -s "$1" ] || "${@:2}" >"$1"; }
database_url() { printf 'postgres://boltyard:%s@postgres:5432/boltyard\n' "$(cat postgres_password)"; }

make master_key openssl rand -base64 32
make operator_token openssl rand -hex 32
make postgres_password openssl rand -hex 24
make database_url database_url
# Compose keeps the permissions of the files, and the containers run as other users, so everyone must be able to read them.
# The permissions of the directory keep other users of this machine out.
chmod 444 ./*
echo 'Keep a copy of secrets/master_key in another place than the backups of the database: without it they are useless, with it they open every wallet.'
