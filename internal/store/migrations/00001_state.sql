-- +goose Up
CREATE TABLE state (
    one INTEGER PRIMARY KEY CHECK (one = 1),
    id  TEXT NOT NULL
) STRICT;
INSERT INTO state VALUES (1, lower(hex(randomblob(8))));

-- The revision changes with every commit to approvals and questions.
CREATE TABLE approval_revision (
    one      INTEGER PRIMARY KEY CHECK (one = 1),
    revision INTEGER NOT NULL
) STRICT;
INSERT INTO approval_revision VALUES (1, 1);

CREATE TABLE approvals (
    server       TEXT NOT NULL,
    grant_digest TEXT NOT NULL,
    body         TEXT NOT NULL,
    tools        BLOB,
    PRIMARY KEY (server, grant_digest)
) STRICT;

CREATE TABLE questions (
    digest TEXT PRIMARY KEY,
    body   TEXT NOT NULL
) STRICT;

CREATE TABLE offers (
    spec         TEXT NOT NULL,
    capabilities TEXT NOT NULL,
    era          TEXT NOT NULL,
    taken        INTEGER NOT NULL,
    body         BLOB NOT NULL,
    PRIMARY KEY (spec, capabilities, era)
) STRICT;
CREATE INDEX offers_taken ON offers (taken);

CREATE TABLE eras (
    image TEXT PRIMARY KEY,
    era   TEXT NOT NULL
) STRICT;

CREATE TABLE images (
    ref      TEXT PRIMARY KEY,
    body     TEXT NOT NULL
) STRICT;

CREATE TABLE activations (
    principal TEXT NOT NULL,
    server    TEXT NOT NULL,
    settings  TEXT NOT NULL,
    by        TEXT NOT NULL,
    at        INTEGER NOT NULL,
    PRIMARY KEY (principal, server)
) STRICT;

-- What was learned of the surroundings, such as what the engine cannot enforce.
CREATE TABLE facts (
    name  TEXT PRIMARY KEY,
    value TEXT NOT NULL
) STRICT;
