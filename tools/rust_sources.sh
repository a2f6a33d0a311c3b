#!/bin/sh
# Which Rust sources these are, as one word: those of a revision of git, or without one those of the work tree, with the files that git
# does not know yet. The same sources have the same word.

set -e
cd "$(dirname "$0")/.."
tree=$1
if [ -z "$tree" ]; then
    place=$(mktemp -d)
    trap 'rm -rf "$place"' EXIT
    # Nothing of it goes into the repository.
    GIT_ALTERNATE_OBJECT_DIRECTORIES=$(git rev-parse --path-format=absolute --git-path objects)
    GIT_OBJECT_DIRECTORY=$place/objects
    GIT_INDEX_FILE=$place/index
    export GIT_ALTERNATE_OBJECT_DIRECTORIES GIT_OBJECT_DIRECTORY GIT_INDEX_FILE
    mkdir "$GIT_OBJECT_DIRECTORY"
    git add --all -- crates Cargo.toml Cargo.lock
    tree=$(git write-tree)
fi
parts=$(git rev-parse "$tree:crates" "$tree:Cargo.toml" "$tree:Cargo.lock")
echo "$parts" | git hash-object --stdin
