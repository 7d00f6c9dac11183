-- A ledger on a PostgreSQL server: the same entries and the same rules as `chain.py`, `rules.py` and `charging.py`, kept
-- to by the server itself. These files are run in the order of their numbers. Analysts and keepers of this database can
-- write only through two functions, which run with the rights of the owner:
--
--   spinney_analyst_DATABASE   analyst_append: request, charge, brand, released, failed
--   spinney_keeper_DATABASE    keeper_append: population, limit, policy, closed, table, approval, denial, and what
--                              belongs to the population that is being imported
--
-- Who writes is `session_user`, which no `SET ROLE` changes; number, time, previous and hash are the server's own; sums
-- are exact fractions of whole numbers. Entries are never updated, deleted or truncated, by nobody, the owner included:
-- whoever disables the triggers changes hashes that others wrote down.

CREATE SCHEMA spinney_ledger;

CREATE TYPE spinney_ledger.fraction AS (n numeric, d numeric);

CREATE TABLE spinney_ledger.entries (
    number bigint PRIMARY KEY,
    content text NOT NULL,
    hash text NOT NULL UNIQUE
);

-- One row, which is locked by whoever writes: writers take turns.
CREATE TABLE spinney_ledger.head (
    is_only boolean PRIMARY KEY DEFAULT true CHECK (is_only),
    version integer NOT NULL,
    number bigint NOT NULL,
    hash text NOT NULL,
    ledger text,     -- the name of this ledger
    importing text   -- the population whose charges are being taken over: the last entries are of its import
);

-- What follows from the entries; `spinney ledger verify` compares the sums and limits with them.
CREATE TABLE spinney_ledger.populations (
    name text PRIMARY KEY,
    unit text NOT NULL,
    epsilon_limit spinney_ledger.fraction,
    delta_limit spinney_ledger.fraction,
    epsilon_spent spinney_ledger.fraction NOT NULL,
    delta_spent spinney_ledger.fraction NOT NULL,
    approval boolean NOT NULL,
    moved_to text,
    imported_ledger text,
    imported_population text,
    UNIQUE (imported_ledger, imported_population)
);
CREATE TABLE spinney_ledger.tables (
    name text PRIMARY KEY,
    population text NOT NULL REFERENCES spinney_ledger.populations,
    schema text,
    is_bound boolean NOT NULL
);
CREATE TABLE spinney_ledger.schemas (
    digest text PRIMARY KEY,
    population text NOT NULL REFERENCES spinney_ledger.populations,
    is_bound boolean NOT NULL
);
CREATE TABLE spinney_ledger.requests (
    number bigint PRIMARY KEY,
    population text NOT NULL REFERENCES spinney_ledger.populations,
    for_table text,
    epsilon spinney_ledger.fraction NOT NULL,
    delta spinney_ledger.fraction NOT NULL,
    made_by text NOT NULL,
    state text NOT NULL CHECK (state IN ('pending', 'approved', 'denied', 'used')),
    fit text,
    purpose text NOT NULL
);
CREATE TABLE spinney_ledger.fits (
    key text PRIMARY KEY,
    population text NOT NULL REFERENCES spinney_ledger.populations,
    made_by text NOT NULL,
    request bigint,
    epsilon spinney_ledger.fraction NOT NULL,
    delta spinney_ledger.fraction NOT NULL,
    n_brands integer NOT NULL,
    is_ended boolean NOT NULL
);
-- Whose release a digest is: of the user who recorded it first.
CREATE TABLE spinney_ledger.releases (
    digest text PRIMARY KEY,
    made_by text NOT NULL
);
-- How much a user has written as an analyst, in entries of 4,000 bytes: nobody fills the ledger alone.
CREATE TABLE spinney_ledger.writers (
    made_by text PRIMARY KEY,
    n bigint NOT NULL,
    n_free bigint NOT NULL  -- of them requests and brands, which charge nothing
);
-- What tells a new entry from one that is sent again because its answer was lost.
CREATE TABLE spinney_ledger.keys (
    key text PRIMARY KEY,
    number bigint NOT NULL,
    made_by text NOT NULL,
    digest text NOT NULL
);

CREATE FUNCTION spinney_ledger.refuse() RETURNS trigger
LANGUAGE plpgsql SET search_path = pg_catalog, pg_temp AS $$
BEGIN
    RAISE EXCEPTION USING ERRCODE = '42501', MESSAGE = 'entries of a ledger are neither changed nor removed';
END
$$;

CREATE TRIGGER entries_are_not_changed BEFORE UPDATE OR DELETE ON spinney_ledger.entries
    FOR EACH ROW EXECUTE FUNCTION spinney_ledger.refuse();
CREATE TRIGGER entries_are_not_truncated BEFORE TRUNCATE ON spinney_ledger.entries
    FOR EACH STATEMENT EXECUTE FUNCTION spinney_ledger.refuse();
CREATE TRIGGER keys_are_not_changed BEFORE UPDATE OR DELETE ON spinney_ledger.keys
    FOR EACH ROW EXECUTE FUNCTION spinney_ledger.refuse();
CREATE TRIGGER keys_are_not_truncated BEFORE TRUNCATE ON spinney_ledger.keys
    FOR EACH STATEMENT EXECUTE FUNCTION spinney_ledger.refuse();
