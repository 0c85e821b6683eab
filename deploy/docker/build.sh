#!/usr/bin/env bash
# Builds the service from the sources in the current directory and puts what it needs to run into OUT.
# usage: build.sh OUT
set -euo pipefail
out=$1

npm ci --no-audit --no-fund
npm run --silent build:service
npm run --silent build -w site

mkdir -p "$out"
cp LICENSE package.json package-lock.json "$out"
for room in cli contract dashboard protocol sandboxd sdk server site; do
  mkdir -p "$out/$room"
  cp "$room/package.json" "$out/$room"
done
for room in cli dashboard sandboxd server site; do cp -R "$room/dist" "$out/$room"; done
cp -R cli/bin "$out/cli"

cd "$out"
# The bundle contains most dependencies. This installs those that it loads from files.
npm ci --no-audit --no-fund --omit=dev --workspace server

# The image runs as another user, who must be able to read what a checkout with a strict umask made.
chmod -R a+rX .
