-- +goose Up
CREATE TABLE tokens (
    name    TEXT PRIMARY KEY,
    role    TEXT NOT NULL,
    digest  BLOB NOT NULL UNIQUE CHECK (length(digest) = 32),
    created INTEGER NOT NULL,
    expires INTEGER NOT NULL
) STRICT;

-- The revision changes with every change of the tokens.
CREATE TABLE token_revision (
    one      INTEGER PRIMARY KEY CHECK (one = 1),
    revision INTEGER NOT NULL
) STRICT;
INSERT INTO token_revision VALUES (1, 1);
