-- A ledger on a PostgreSQL server: the same entries and the same rules as in `chain.py` and `rules.py`, kept to by the
-- server itself. Analysts and keepers of this database can write only through two functions, which run with the rights
-- of the owner, and read what the last part grants them:
--
--   spinney_analyst_DATABASE   analyst_append: request, charge, brand, released, failed
--   spinney_keeper_DATABASE    keeper_append: population, limit, policy, closed, table, approval, denial, and what
--                              belongs to the population that is being imported
--
-- Who writes is `session_user`, which no `SET ROLE` changes; number, time, previous and hash are the server's own; sums
-- are exact fractions of whole numbers. Entries are never updated, deleted or truncated, by nobody, the owner included:
-- whoever disables the triggers changes hashes that others wrote down.
--
--   tables       entries, what follows from them, and what entries may hold
--   numbers      exact fractions
--   fields       every field of an entry or an event is what its row in `fields` says
--   events       what charges and brands list, and what it costs
--   keepers      rules of populations, limits, policies, tables, requests and answers
--   charges      rules of charges, brands and what came of them
--   writing      how an entry is written
--   rights       who may do what
--
-- What fields have to be, and how much of anything there may be, is not written here: `postgres.py` puts the tables
-- `kinds`, `fields` and `bounds` in from those that Python checks by. Rules that look at the ledger are written in both
-- languages, each next to the tables that it asks; tests hold the two against each other and against a third model.
--
-- Every rule is `require(condition, what to say otherwise)`, and a condition that is null is not met. Names are those
-- of this schema and of `pg_catalog`, as the functions through which everything is called set `search_path`; nobody
-- but the owner can make anything in this schema, or call any other function of it.

CREATE SCHEMA spinney_ledger;
SET LOCAL search_path = spinney_ledger, pg_temp;

-- ------------------------------------------------------------------------------------------------------------- tables

CREATE TYPE fraction AS (n numeric, d numeric);  -- in lowest terms, d above 0

CREATE TABLE entries (
    number bigint PRIMARY KEY,
    content text NOT NULL,
    hash text NOT NULL UNIQUE
);

-- One row, which is locked by whoever writes: writers take turns.
CREATE TABLE head (
    is_only boolean PRIMARY KEY DEFAULT true CHECK (is_only),
    version integer NOT NULL,
    number bigint NOT NULL,
    hash text NOT NULL,
    ledger text,     -- the name of this ledger
    importing text   -- the population whose charges are being taken over: the last entries are of its import
);

-- What entries, events and parts there are, and who may write entries of a kind.
CREATE TABLE kinds (
    name text PRIMARY KEY,
    sort text NOT NULL CHECK (sort IN ('entry', 'charge', 'brand', 'part')),  -- 'charge' and 'brand' are of events
    writers text[] NOT NULL
);
-- What each of their fields has to be (`mechanisms.Field`).
CREATE TABLE fields (
    thing text REFERENCES kinds,
    name text,
    kind text NOT NULL CHECK (kind IN ('exact', 'whole', 'text', 'flag', 'list')),
    low fraction,
    high fraction,
    ends text NOT NULL,
    pattern text,
    is_needed boolean NOT NULL,
    otherwise text NOT NULL,
    PRIMARY KEY (thing, name)
);
CREATE TABLE bounds (
    name text PRIMARY KEY,
    value numeric NOT NULL
);

-- What follows from the entries; `spinney ledger verify` compares the sums and limits with them.
CREATE TABLE populations (
    name text PRIMARY KEY,
    unit text NOT NULL,
    epsilon_limit fraction,
    delta_limit fraction,
    epsilon_spent fraction NOT NULL DEFAULT ROW(0, 1)::fraction,
    delta_spent fraction NOT NULL DEFAULT ROW(0, 1)::fraction,
    approval boolean NOT NULL,
    moved_to text,
    imported_ledger text,
    imported_population text,
    UNIQUE (imported_ledger, imported_population)
);
CREATE TABLE tables (
    name text PRIMARY KEY,
    population text NOT NULL REFERENCES populations,
    schema text,
    is_bound boolean NOT NULL
);
CREATE TABLE schemas (
    digest text PRIMARY KEY,
    population text NOT NULL REFERENCES populations,
    is_bound boolean NOT NULL
);
CREATE TABLE requests (
    number bigint PRIMARY KEY,
    population text NOT NULL REFERENCES populations,
    for_table text,
    epsilon fraction NOT NULL,
    delta fraction NOT NULL,
    made_by text NOT NULL,
    state text NOT NULL CHECK (state IN ('pending', 'approved', 'denied', 'used')),
    fit text,
    purpose text NOT NULL
);
CREATE TABLE fits (
    key text PRIMARY KEY,
    population text NOT NULL REFERENCES populations,
    made_by text NOT NULL,
    request bigint,
    epsilon fraction NOT NULL DEFAULT ROW(0, 1)::fraction,
    delta fraction NOT NULL DEFAULT ROW(0, 1)::fraction,
    n_brands integer NOT NULL DEFAULT 0,
    is_ended boolean NOT NULL DEFAULT false
);
-- Whose release a digest is: of the user who recorded it first.
CREATE TABLE releases (
    digest text PRIMARY KEY,
    made_by text NOT NULL
);
-- How much a user has written as an analyst, in entries of 4,000 bytes: nobody fills the ledger alone.
CREATE TABLE writers (
    made_by text PRIMARY KEY,
    n bigint NOT NULL,
    n_free bigint NOT NULL  -- of them requests and brands, which charge nothing
);
-- What tells a new entry from one that is sent again because its answer was lost.
CREATE TABLE keys (
    key text PRIMARY KEY,
    number bigint NOT NULL,
    made_by text NOT NULL,
    digest text NOT NULL
);

CREATE FUNCTION refuse() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    RAISE EXCEPTION USING ERRCODE = '42501', MESSAGE = 'entries of a ledger are neither changed nor removed';
END $$;

CREATE TRIGGER entries_are_not_changed BEFORE UPDATE OR DELETE ON entries FOR EACH ROW EXECUTE FUNCTION refuse();
CREATE TRIGGER entries_are_not_truncated BEFORE TRUNCATE ON entries FOR EACH STATEMENT EXECUTE FUNCTION refuse();
CREATE TRIGGER keys_are_not_changed BEFORE UPDATE OR DELETE ON keys FOR EACH ROW EXECUTE FUNCTION refuse();
CREATE TRIGGER keys_are_not_truncated BEFORE TRUNCATE ON keys FOR EACH STATEMENT EXECUTE FUNCTION refuse();

-- SP001: the budget does not suffice; SP002: the entry breaks a rule.
CREATE FUNCTION require(is_met boolean, otherwise text, code text DEFAULT 'SP002') RETURNS void LANGUAGE plpgsql AS $$
BEGIN
    IF is_met IS NOT TRUE THEN
        RAISE EXCEPTION USING ERRCODE = code, MESSAGE = otherwise;
    END IF;
END $$;

CREATE FUNCTION bound(what text) RETURNS numeric LANGUAGE sql STABLE AS $$
    SELECT b.value FROM bounds b WHERE b.name = what
$$;

-- ------------------------------------------------------------------------------------------------------------ numbers

CREATE FUNCTION reduced(n numeric, d numeric) RETURNS fraction LANGUAGE sql IMMUTABLE STRICT AS $$
    SELECT ROW(div(n, gcd(n, d)), div(d, gcd(n, d)))::fraction
$$;

-- A sum, of so many digits at most that everybody can add to it.
CREATE FUNCTION plus(a fraction, b fraction) RETURNS fraction LANGUAGE plpgsql STABLE STRICT AS $$
DECLARE
    added fraction := reduced((a).n * (b).d + (b).n * (a).d, (a).d * (b).d);
BEGIN
    PERFORM require(greatest(length((added).n::text), length((added).d::text)) <= bound('digits of a sum'),
        'the sum of these charges has too many digits', 'SP001');
    RETURN added;
END $$;

CREATE FUNCTION negated(a fraction) RETURNS fraction LANGUAGE sql IMMUTABLE STRICT AS $$
    SELECT ROW(-(a).n, (a).d)::fraction
$$;

CREATE AGGREGATE total(fraction) (sfunc = plus, stype = fraction, initcond = '(0,1)');

CREATE FUNCTION is_at_most(a fraction, b fraction) RETURNS boolean LANGUAGE sql IMMUTABLE STRICT AS $$
    SELECT (a).n * (b).d <= (b).n * (a).d
$$;

CREATE FUNCTION written(a fraction) RETURNS text LANGUAGE sql IMMUTABLE AS $$
    SELECT (a).n::text || CASE WHEN (a).d = 1 THEN '' ELSE '/' || (a).d::text END
$$;

-- The number that a text stands for, or null where it is null.
CREATE FUNCTION exact(given text, what text) RETURNS fraction LANGUAGE plpgsql STABLE STRICT AS $$
DECLARE
    n text := split_part(given, '/', 1);
    d text := coalesce(nullif(split_part(given, '/', 2), ''), '1');
BEGIN
    PERFORM require(given ~ '^[0-9]+(/0*[1-9][0-9]*)?$'
        AND greatest(length(n), length(d)) <= bound('digits of a charge'),
        what || ' is not an exact number such as 1/2, 0 or more');
    RETURN reduced(n::numeric, d::numeric);
END $$;

-- What a cost counts as in the sum of a population: itself where its denominator divides the grain, and otherwise the
-- next multiple of one over the grain. So no charge makes the sum of all charges longer than the grain (`chain.py`).
CREATE FUNCTION counted(cost fraction) RETURNS fraction LANGUAGE sql STABLE STRICT AS $$
    SELECT CASE WHEN mod(bound('grain'), (cost).d) = 0 THEN cost
        ELSE reduced(div((cost).n * bound('grain') + (cost).d - 1, (cost).d), bound('grain')) END
$$;

-- ------------------------------------------------------------------------------------------------------------- fields

CREATE FUNCTION is_within(size fraction, low fraction, high fraction, ends text) RETURNS boolean
LANGUAGE sql IMMUTABLE AS $$
    SELECT size IS NOT NULL
        AND (low IS NULL OR (is_at_most(low, size) AND (left(ends, 1) = '[' OR size <> low)))
        AND (high IS NULL OR (is_at_most(size, high) AND (right(ends, 1) = ']' OR size <> high)))
$$;

-- A value is what its field has to be.
CREATE FUNCTION check_value(value json, field fields) RETURNS void LANGUAGE plpgsql STABLE AS $$
DECLARE
    plain text := value #>> '{}';
    size fraction;
BEGIN
    IF plain IS NULL THEN
        PERFORM require(NOT field.is_needed, field.name || ' is missing');
        RETURN;
    END IF;
    PERFORM require(json_typeof(value) = CASE field.kind
            WHEN 'whole' THEN 'number' WHEN 'flag' THEN 'boolean' WHEN 'list' THEN 'array' ELSE 'string' END
        AND (field.kind <> 'whole' OR plain ~ '^(0|[1-9][0-9]{0,18})$')
        AND (field.pattern IS NULL OR plain ~ ('^(' || field.pattern || ')$')),
        field.name || ' ' || field.otherwise);
    size := CASE field.kind
        WHEN 'exact' THEN exact(plain, field.name)
        WHEN 'whole' THEN ROW(plain::numeric, 1)::fraction
        WHEN 'text' THEN ROW(char_length(plain), 1)::fraction
        WHEN 'list' THEN ROW(json_array_length(value), 1)::fraction
        ELSE ROW(1, 1)::fraction END;
    PERFORM require(is_within(size, field.low, field.high, field.ends), field.name || ' ' || field.otherwise);
END $$;

-- The fields of an entry, all checked; whatever else was given is left out.
CREATE FUNCTION fields_of(entry_kind text, given jsonb) RETURNS jsonb LANGUAGE plpgsql STABLE AS $$
DECLARE
    field fields;
    said jsonb := '{}';
BEGIN
    FOR field IN SELECT * FROM fields f WHERE f.thing = entry_kind LOOP
        PERFORM check_value((given -> field.name)::json, field);
        said := said || jsonb_build_object(field.name, given -> field.name);
    END LOOP;
    RETURN said;
END $$;

-- ------------------------------------------------------------------------------------------------------------- events

-- Each of a list is an event or a part of the sort, with exactly the fields of its kind. What is none is not stored, so
-- that everybody can read what is.
CREATE FUNCTION check_list(listed json, wanted text) RETURNS void LANGUAGE plpgsql STABLE AS $$
DECLARE
    tag text := CASE wanted WHEN 'part' THEN 'part' ELSE 'event' END;
    each json;
    field fields;
BEGIN
    PERFORM require(json_typeof(listed) = 'array' AND json_array_length(listed) BETWEEN 1 AND bound('listed'),
        'a list of events or parts does not have 1 to ' || bound('listed') || ' of them');
    FOR each IN SELECT * FROM json_array_elements(listed) LOOP
        PERFORM require(json_typeof(each) = 'object', 'an event is not a table of fields');
        PERFORM require(EXISTS (SELECT FROM kinds k WHERE k.name = each ->> tag AND k.sort = wanted),
            'an event is not of a kind that belongs here');
        PERFORM require(ARRAY(SELECT k COLLATE "C" FROM json_object_keys(each) k ORDER BY 1) =
            ARRAY(SELECT f.name COLLATE "C" FROM fields f WHERE f.thing = each ->> tag UNION ALL SELECT tag ORDER BY 1),
            'an event has other fields than those of its kind');
        FOR field IN SELECT * FROM fields f WHERE f.thing = each ->> tag LOOP
            PERFORM check_value(each -> field.name, field);
            IF field.kind = 'list' THEN
                PERFORM check_list(each -> field.name, 'part');
            END IF;
        END LOOP;
    END LOOP;
END $$;

-- The events of an entry as they are written down: checked first, so that nothing in them grows.
CREATE FUNCTION events_of(entry_kind text, given jsonb) RETURNS text LANGUAGE plpgsql STABLE AS $$
DECLARE
    listed json;
BEGIN
    PERFORM require(jsonb_typeof(given -> 'events') = 'string', 'events is missing, or not the text of a list');
    listed := (given ->> 'events')::json;
    PERFORM check_list(listed, entry_kind);
    PERFORM require(octet_length(listed::jsonb::text) <= bound('bytes of events'),
        'events is longer than ' || bound('bytes of events') || ' bytes');
    RETURN listed::jsonb::text;
END $$;

-- What the events of a charge cost together.
CREATE FUNCTION cost_of(events jsonb) RETURNS jsonb LANGUAGE sql STABLE AS $$
    SELECT jsonb_build_object(
        'epsilon', written(total(exact(event ->> 'epsilon', 'epsilon'))),
        'delta', written(total(exact(coalesce(event ->> 'delta', '0'), 'delta')))
    ) FROM jsonb_array_elements(events) event
$$;

-- What composed charges may hold, so that everybody can work out what their parts cost.
CREATE FUNCTION check_composed(events jsonb) RETURNS void LANGUAGE plpgsql STABLE AS $$
DECLARE
    least fraction := ROW(1, bound('one over the least composed delta'));
BEGIN
    PERFORM require(is_at_most(least, exact(event ->> 'delta', 'delta')), 'delta of a composed charge is below 1e-10')
        FROM jsonb_array_elements(events) event WHERE event ->> 'event' = 'ComposedRelease';
    PERFORM require(count(*) <= bound('parts') AND coalesce(sum((part ->> 'levels')::bigint), 0) <= bound('levels'),
        'a charge is composed of more than 64 parts, or its trees have more than 1,024 levels together')
        FROM jsonb_array_elements(events) event, jsonb_array_elements(event -> 'parts') part;
END $$;

-- ------------------------------------------------------------------------------------------------------------ keepers

CREATE FUNCTION population_of(said jsonb) RETURNS populations LANGUAGE plpgsql AS $$
DECLARE
    found_one populations;
BEGIN
    SELECT * INTO found_one FROM populations p WHERE p.name = said ->> 'population';
    PERFORM require(FOUND, 'this ledger has no such population');
    RETURN found_one;
END $$;

CREATE FUNCTION check_table(table_name text, population_name text) RETURNS void LANGUAGE plpgsql AS $$
BEGIN
    PERFORM require(NOT EXISTS (SELECT FROM tables t WHERE t.name = table_name AND t.population <> population_name),
        'the table belongs to another population; the same people would have two budgets');
END $$;

CREATE FUNCTION take_population(said jsonb) RETURNS void LANGUAGE plpgsql AS $$
DECLARE
    source text := said ->> 'imported';
BEGIN
    PERFORM require(num_nulls(source, said ->> 'imported_population', said ->> 'imported_head') IN (0, 3),
        'imported, imported_population and imported_head are not given together');
    PERFORM require(source IS DISTINCT FROM (SELECT h.ledger FROM head h),
        'a ledger, or a copy of it, cannot be imported into itself; it would have the rest once more');
    PERFORM require(NOT EXISTS (
            SELECT FROM populations p
            WHERE p.imported_ledger = source AND p.imported_population = said ->> 'imported_population'
        ),
        'this population was imported already; a copy of it would have the rest once more');
    PERFORM require(NOT EXISTS (SELECT FROM populations p WHERE p.name = said ->> 'population'),
        'the population exists already; choose another name');
    INSERT INTO populations (
        name, unit, epsilon_limit, delta_limit, approval, imported_ledger, imported_population
    ) VALUES (
        said ->> 'population', said ->> 'unit', exact(said ->> 'epsilon', 'limit'), exact(said ->> 'delta', 'delta'),
        (said ->> 'approval')::boolean, source, said ->> 'imported_population'
    );
END $$;

-- What a keeper says of a population that exists.
CREATE FUNCTION take_decision(entry_kind text, said jsonb) RETURNS void LANGUAGE plpgsql AS $$
DECLARE
    population populations := population_of(said);
BEGIN
    CASE entry_kind
    WHEN 'limit' THEN
        UPDATE populations p SET moved_to = NULL,
            epsilon_limit = exact(said ->> 'epsilon', 'limit'), delta_limit = exact(said ->> 'delta', 'delta')
            WHERE p.name = population.name;
    WHEN 'policy' THEN
        UPDATE populations p SET approval = (said ->> 'approval')::boolean WHERE p.name = population.name;
    WHEN 'closed' THEN
        PERFORM require(population.moved_to IS NULL, 'the population is closed already');
        UPDATE populations p SET moved_to = said ->> 'moved_to' WHERE p.name = population.name;
    WHEN 'table' THEN
        -- This overrides what a charge said, and not what a keeper said before.
        IF EXISTS (SELECT FROM tables t WHERE t.name = said ->> 'table' AND t.is_bound) THEN
            PERFORM check_table(said ->> 'table', population.name);
        END IF;
        INSERT INTO tables AS t VALUES (said ->> 'table', population.name, said ->> 'schema', true)
            ON CONFLICT (name)
            DO UPDATE SET population = excluded.population, schema = excluded.schema, is_bound = true;
        INSERT INTO schemas AS s SELECT said ->> 'schema', population.name, true WHERE said ->> 'schema' IS NOT NULL
            ON CONFLICT (digest) DO UPDATE SET population = excluded.population, is_bound = true WHERE NOT s.is_bound;
    END CASE;
END $$;

CREATE FUNCTION take_request(said jsonb, entry_number bigint) RETURNS void LANGUAGE plpgsql AS $$
DECLARE
    population populations := population_of(said);
BEGIN
    PERFORM check_table(said ->> 'table', population.name);
    PERFORM require((SELECT count(*) FROM requests r WHERE r.made_by = session_user AND r.state = 'pending')
            < bound('pending requests'),
        'this user has ' || bound('pending requests') || ' requests that nobody has decided on; wait for an answer to '
            'one of them');
    INSERT INTO requests VALUES (
        entry_number, population.name, said ->> 'table', exact(said ->> 'epsilon', 'epsilon'),
        exact(said ->> 'delta', 'delta'), session_user, 'pending', NULL, said ->> 'purpose'
    );
END $$;

CREATE FUNCTION take_answer(entry_kind text, said jsonb) RETURNS void LANGUAGE plpgsql AS $$
DECLARE
    request requests;
BEGIN
    SELECT * INTO request FROM requests r WHERE r.number = (said ->> 'request')::bigint;
    PERFORM require(request.state = 'pending', 'there is no such request, or it is decided already');
    PERFORM require(entry_kind = 'denial' OR request.made_by <> session_user,
        'the request is by ' || session_user || ', and somebody else has to approve it');
    UPDATE requests r SET state = CASE entry_kind WHEN 'approval' THEN 'approved' ELSE 'denied' END
        WHERE r.number = request.number;
END $$;

-- ------------------------------------------------------------------------------------------------------------ charges

-- What is imported belongs to the population that is being imported: it passes limits and approval, and cannot be added
-- to any other.
CREATE FUNCTION check_importing(population_name text) RETURNS void LANGUAGE plpgsql AS $$
BEGIN
    PERFORM require((SELECT h.importing FROM head h) = population_name,
        'what is imported follows the entry of its population, with nothing in between');
END $$;

-- The fit that a charge or a brand belongs to: one of this user and population that has not ended, or a new one.
CREATE FUNCTION fit_of(said jsonb) RETURNS fits LANGUAGE plpgsql AS $$
DECLARE
    fit fits;
BEGIN
    INSERT INTO fits (key, population, made_by) VALUES (said ->> 'fit', said ->> 'population', session_user)
        ON CONFLICT DO NOTHING;
    SELECT * INTO STRICT fit FROM fits f WHERE f.key = said ->> 'fit';
    PERFORM require(fit.population = said ->> 'population' AND fit.made_by = session_user AND NOT fit.is_ended,
        'the entries of one fit have one population, one user and one request, and end with it');
    RETURN fit;
END $$;

-- The table and the schema of a charge belong to its population.
CREATE FUNCTION check_place(said jsonb) RETURNS void LANGUAGE plpgsql AS $$
DECLARE
    bound_table tables;
BEGIN
    PERFORM check_table(said ->> 'table', said ->> 'population');
    SELECT * INTO bound_table FROM tables t WHERE t.name = said ->> 'table';
    PERFORM require(coalesce(bound_table.schema = said ->> 'schema', true), 'the table is bound to another schema');
    PERFORM require(coalesce(bound_table.is_bound, false) OR NOT EXISTS (
            SELECT FROM schemas s WHERE s.digest = said ->> 'schema' AND s.population <> said ->> 'population'
        ),
        'a table of the same schema was charged to another population; name it and have it bound first');
END $$;

-- What is spent after a charge is within a limit, where there is one.
CREATE FUNCTION check_limit(what text, cost fraction, before fraction, spent fraction, most fraction) RETURNS void
LANGUAGE plpgsql AS $$
BEGIN
    PERFORM require(most IS NULL OR is_at_most(spent, most),
        format('%s=%s does not fit: %s of %s is spent', what, written(cost), written(before), written(most)), 'SP001');
END $$;

-- The purpose of a charge: what was said, or else what was asked for; an error where its request may not pay for it.
CREATE FUNCTION paid_purpose(population populations, said jsonb, in_all fraction, in_all_delta fraction) RETURNS text
LANGUAGE plpgsql AS $$
DECLARE
    request requests;
BEGIN
    IF said ->> 'request' IS NULL THEN
        PERFORM require(NOT population.approval,
            'charges to this population need an approved request, and none was named', 'SP001');
        RETURN said ->> 'purpose';
    END IF;
    SELECT * INTO request FROM requests r WHERE r.number = (said ->> 'request')::bigint;
    PERFORM require(request.population = population.name AND request.made_by = session_user
        AND request.state IN ('approved', 'used') AND coalesce(request.fit = said ->> 'fit', true)
        AND (request.for_table IS NULL OR request.for_table = said ->> 'table')
        AND coalesce(request.purpose = said ->> 'purpose', true)
        AND is_at_most(in_all, request.epsilon) AND is_at_most(in_all_delta, request.delta),
        'request ' || (said ->> 'request')
            || ' is not one of this user that is approved, unused, for this table and purpose, and sufficient',
        'SP001');
    UPDATE requests r SET state = 'used', fit = said ->> 'fit' WHERE r.number = request.number;
    RETURN request.purpose;
END $$;

CREATE FUNCTION take_charge(said jsonb) RETURNS jsonb LANGUAGE plpgsql AS $$
DECLARE
    population populations := population_of(said);
    fit fits := fit_of(said);
    request_number bigint := said ->> 'request';
    cost fraction := exact(said ->> 'epsilon', 'epsilon');
    cost_delta fraction := exact(said ->> 'delta', 'delta');
    in_all fraction := plus(fit.epsilon, cost);
    in_all_delta fraction := plus(fit.delta, cost_delta);
    -- A population is charged what its fits count as, each rounded up once.
    spent fraction := plus(population.epsilon_spent, plus(counted(in_all), negated(counted(fit.epsilon))));
    spent_delta fraction := plus(population.delta_spent, plus(counted(in_all_delta), negated(counted(fit.delta))));
BEGIN
    PERFORM require(said ->> 'unit' = population.unit,
        'the unit of the charge does not match the ledger''s; budgets in different units do not add up');
    PERFORM require((fit.epsilon).n = 0 OR fit.request IS NOT DISTINCT FROM request_number,
        'the entries of one fit have one population, one user and one request, and end with it');
    IF (said ->> 'imported')::boolean THEN
        PERFORM check_importing(population.name);
    ELSE
        PERFORM check_composed((said ->> 'events')::jsonb);
        PERFORM check_place(said);
        PERFORM require(population.moved_to IS NULL,
            'the population is closed here: it was moved to ' || population.moved_to || '; charge it there',
            'SP001');
        PERFORM check_limit('epsilon', cost, population.epsilon_spent, spent, population.epsilon_limit);
        PERFORM check_limit('delta', cost_delta, population.delta_spent, spent_delta, population.delta_limit);
        said := said || jsonb_build_object('purpose', paid_purpose(population, said, in_all, in_all_delta));
    END IF;

    UPDATE populations p SET epsilon_spent = spent, delta_spent = spent_delta WHERE p.name = population.name;
    UPDATE fits f SET epsilon = in_all, delta = in_all_delta, request = request_number WHERE f.key = fit.key;
    INSERT INTO tables SELECT said ->> 'table', population.name, NULL, false WHERE said ->> 'table' IS NOT NULL
        ON CONFLICT DO NOTHING;
    INSERT INTO schemas SELECT said ->> 'schema', population.name, false WHERE said ->> 'schema' IS NOT NULL
        ON CONFLICT DO NOTHING;
    RETURN said;
END $$;

-- A brand is of a fit of the same user that has not ended, or begins one.
CREATE FUNCTION take_brand(said jsonb) RETURNS void LANGUAGE plpgsql AS $$
DECLARE
    population populations := population_of(said);
    fit fits := fit_of(said);
BEGIN
    IF (said ->> 'imported')::boolean THEN
        PERFORM check_importing(population.name);
    ELSE
        PERFORM require(octet_length(said ->> 'events') <= bound('bytes of a brand'),
            'a brand is longer than 4,000 bytes; shorten its note');
        PERFORM require(fit.n_brands < bound('brands of a fit'),
            'this fit has ' || bound('brands of a fit') || ' brands already');
        PERFORM require(fit.n_brands > 0 OR (fit.epsilon).n > 0 OR (
                SELECT count(*) FROM fits f WHERE f.made_by = session_user AND (f.epsilon).n = 0
            ) <= bound('unpaid fits'),
            'this user has ' || bound('unpaid fits') || ' brands of fits that charged nothing; charge first');
    END IF;
    UPDATE fits f SET n_brands = n_brands + 1 WHERE f.key = fit.key;
END $$;

-- What came of a fit: the digest of a release, or the kind of an error.
CREATE FUNCTION take_end(said jsonb) RETURNS void LANGUAGE plpgsql AS $$
DECLARE
    fit fits;
BEGIN
    SELECT * INTO fit FROM fits f WHERE f.key = said ->> 'fit';
    PERFORM require(fit.made_by = session_user AND NOT fit.is_ended AND (fit.epsilon).n > 0,
        'this user has no such fit, or what came of it is on record already');
    IF (said ->> 'imported')::boolean THEN
        PERFORM check_importing(fit.population);
    ELSE
        PERFORM require(NOT EXISTS (
                SELECT FROM releases r WHERE r.digest = said ->> 'release' AND r.made_by <> session_user
            ),
            'this release is on record as somebody else''s');
    END IF;
    INSERT INTO releases SELECT said ->> 'release', session_user WHERE said ->> 'release' IS NOT NULL
        ON CONFLICT DO NOTHING;
    UPDATE fits f SET is_ended = true WHERE f.key = fit.key;
END $$;

-- ------------------------------------------------------------------------------------------------------------ writing

CREATE FUNCTION append(entry_kind text, given json, spinney_version text, entry_key text, is_imported boolean)
RETURNS entries LANGUAGE plpgsql SET search_path = spinney_ledger, pg_temp AS $$
DECLARE
    is_paid boolean := entry_kind IN ('charge', 'brand');
    said jsonb;
    last head;
    known keys;
    result entries;
    call_digest text := encode(sha256(convert_to(entry_kind || ' ' || given::text, 'UTF8')), 'hex');
BEGIN
    -- What can be refused without a look at the ledger is refused before others have to wait.
    PERFORM require(octet_length(given::text) <= bound('bytes of an entry') AND json_typeof(given) = 'object'
        AND entry_key ~ '^[0-9a-f]{32}$' AND spinney_version ~ '^[0-9A-Za-z.+_-]{1,50}$'
        AND (NOT is_paid OR given ->> 'key' = entry_key),
        'an entry is not what this ledger takes');
    said := given::jsonb;
    IF is_paid THEN
        said := said || jsonb_build_object('events', events_of(entry_kind, said));
    END IF;
    IF entry_kind = 'charge' THEN
        said := said || cost_of((said ->> 'events')::jsonb);
        IF is_imported THEN
            said := said - 'request';
        END IF;
    END IF;
    IF is_paid OR entry_kind IN ('released', 'failed') THEN
        said := said || jsonb_build_object('imported', is_imported);
    END IF;
    said := fields_of(entry_kind, said);
    PERFORM require(entry_kind NOT IN ('population', 'limit')
        OR num_nulls(said ->> 'epsilon', said ->> 'delta') IN (0, 2),
        'limits are of epsilon and of delta, or of neither');

    -- A charge is durable when its transaction ends, and nobody keeps others waiting by forgetting to end one.
    PERFORM set_config('synchronous_commit', 'on', true);
    PERFORM set_config('idle_in_transaction_session_timeout', '10s', true);
    SELECT * INTO STRICT last FROM head FOR UPDATE;
    SELECT * INTO known FROM keys k WHERE k.key = entry_key;
    IF FOUND THEN
        PERFORM require(known.made_by = session_user AND known.digest = call_digest,
            'this key is on record already, for something else');
        SELECT * INTO STRICT result FROM entries e WHERE e.number = known.number;
        RETURN result;
    END IF;
    PERFORM require(last.number < bound('entries'),
        'a ledger has at most ' || bound('entries') || ' entries; begin another', 'SP001');

    result.number := last.number + 1;
    PERFORM require((entry_kind = 'opened') = (result.number = 1), 'a ledger begins with one entry that opens it');
    CASE
    WHEN entry_kind = 'opened' THEN last.ledger := said ->> 'ledger';
    WHEN entry_kind = 'population' THEN PERFORM take_population(said);
    WHEN entry_kind IN ('limit', 'policy', 'closed', 'table') THEN PERFORM take_decision(entry_kind, said);
    WHEN entry_kind = 'request' THEN PERFORM take_request(said, result.number);
    WHEN entry_kind IN ('approval', 'denial') THEN PERFORM take_answer(entry_kind, said);
    WHEN entry_kind = 'charge' THEN said := take_charge(said);
    WHEN entry_kind = 'brand' THEN PERFORM take_brand(said);
    WHEN entry_kind IN ('released', 'failed') THEN PERFORM take_end(said);
    ELSE PERFORM require(false, 'there is no such kind of entry');
    END CASE;
    last.importing := CASE
        WHEN entry_kind = 'population' AND said ->> 'imported' IS NOT NULL THEN said ->> 'population'
        WHEN said ->> 'imported' = 'true' THEN last.importing END;

    result.content := (said || jsonb_build_object(
        'number', result.number, 'previous', last.hash, 'kind', entry_kind, 'user', session_user,
        'spinney', spinney_version,
        'time', to_char(clock_timestamp() AT TIME ZONE 'UTC', 'YYYY-MM-DD"T"HH24:MI:SS.US"Z"')
    ))::text;
    PERFORM require(octet_length(result.content) <= bound('bytes of an entry'), 'an entry is too long');
    result.hash := encode(sha256(convert_to(result.content, 'UTF8')), 'hex');
    INSERT INTO entries VALUES (result.number, result.content, result.hash);
    INSERT INTO keys VALUES (entry_key, result.number, session_user, call_digest);
    UPDATE head
        SET number = result.number, hash = result.hash, ledger = last.ledger, importing = last.importing;
    RETURN result;
END $$;

-- Those who have a role may write entries of a kind.
CREATE FUNCTION check_writer(entry_kind text, role text, otherwise text) RETURNS void LANGUAGE plpgsql AS $$
BEGIN
    PERFORM require(EXISTS (
            SELECT FROM kinds k WHERE k.name = entry_kind AND k.sort = 'entry' AND role = ANY (k.writers)
        ),
        otherwise, '42501');
END $$;

CREATE FUNCTION analyst_append(entry_kind text, given json, spinney_version text, entry_key text) RETURNS entries
LANGUAGE plpgsql SECURITY DEFINER SET search_path = spinney_ledger, pg_temp AS $$
DECLARE
    result entries;
    wrote writers;
BEGIN
    PERFORM check_writer(entry_kind, 'analyst', 'an analyst may request and charge, and nothing else');
    result := append(entry_kind, given, spinney_version, entry_key, false);
    -- Everybody reads all entries, so long ones count for several.
    wrote := ROW(session_user, 1 + octet_length(result.content) / 4000, 0);
    IF entry_kind IN ('request', 'brand') THEN
        wrote.n_free := wrote.n;
    END IF;
    INSERT INTO writers AS w VALUES (wrote.*)
        ON CONFLICT (made_by) DO UPDATE SET n = w.n + excluded.n, n_free = w.n_free + excluded.n_free
        RETURNING w.* INTO wrote;
    PERFORM require(wrote.n_free <= bound('free entries of a user') OR entry_kind NOT IN ('request', 'brand'),
        'one user writes at most 5,000 requests and brands into a ledger; begin another', 'SP001');
    -- What was begun can end.
    PERFORM require(wrote.n <= bound('entries of a user') OR entry_kind NOT IN ('request', 'charge', 'brand'),
        'one user writes at most 100,000 of the 1,000,000 entries of a ledger; begin another', 'SP001');
    RETURN result;
END $$;

CREATE FUNCTION keeper_append(entry_kind text, given json, spinney_version text, entry_key text) RETURNS entries
LANGUAGE plpgsql SECURITY DEFINER SET search_path = spinney_ledger, pg_temp AS $$
BEGIN
    PERFORM check_writer(entry_kind, 'keeper', 'this is not a keeper''s to write');
    RETURN append(entry_kind, given, spinney_version, entry_key, true);
END $$;

-- ------------------------------------------------------------------------------------------------------------- rights

-- Roles belong to all databases of a server, so they carry the name of this one.
DO $$
DECLARE
    analyst text := 'spinney_analyst_' || current_database();
    keeper text := 'spinney_keeper_' || current_database();
    role text;
BEGIN
    PERFORM require(octet_length(analyst) <= 63,
        'the name of the database is longer than 47 bytes, and roles are named after it');
    PERFORM require(current_setting('server_encoding') = 'UTF8', 'the encoding of the database is not UTF8');
    REVOKE ALL ON SCHEMA spinney_ledger FROM PUBLIC;
    REVOKE ALL ON ALL TABLES IN SCHEMA spinney_ledger FROM PUBLIC;
    REVOKE ALL ON ALL FUNCTIONS IN SCHEMA spinney_ledger FROM PUBLIC;
    FOREACH role IN ARRAY ARRAY[analyst, keeper] LOOP
        IF NOT EXISTS (SELECT FROM pg_roles r WHERE r.rolname = role) THEN
            EXECUTE format('CREATE ROLE %I NOLOGIN', role);
        END IF;
        EXECUTE format('GRANT USAGE ON SCHEMA spinney_ledger TO %I', role);
        EXECUTE format(
            'GRANT SELECT ON entries, head, populations, tables, requests, fits, kinds, fields, bounds TO %I', role
        );
    END LOOP;
    EXECUTE format('GRANT EXECUTE ON FUNCTION analyst_append TO %I', analyst);
    EXECUTE format('GRANT EXECUTE ON FUNCTION keeper_append TO %I', keeper);
END $$;
