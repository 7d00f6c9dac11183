-- A ledger on a PostgreSQL server: the same entries and the same rules as `chain.py` and `rules.py`, kept to by the
-- server itself. Analysts and keepers can write only through two functions, which run with the rights of the owner:
--
--   spinney_analyst   analyst_append: request, charge, brand, released, failed
--   spinney_keeper    keeper_append: population, limit, policy, table, approval, denial, and charges of an imported ledger
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
    hash text NOT NULL
);

-- What follows from the entries, and is compared with them by `spinney ledger verify`.
CREATE TABLE spinney_ledger.populations (
    name text PRIMARY KEY,
    unit text NOT NULL,
    epsilon_limit spinney_ledger.fraction,
    delta_limit spinney_ledger.fraction,
    epsilon_spent spinney_ledger.fraction NOT NULL,
    delta_spent spinney_ledger.fraction NOT NULL,
    approval boolean NOT NULL,
    imported text UNIQUE
);
CREATE TABLE spinney_ledger.tables (
    name text PRIMARY KEY,
    population text NOT NULL REFERENCES spinney_ledger.populations,
    schema text,
    is_bound boolean NOT NULL
);
CREATE TABLE spinney_ledger.schemas (
    digest text PRIMARY KEY,
    population text NOT NULL REFERENCES spinney_ledger.populations
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
    is_ended boolean NOT NULL
);
-- What tells a new entry from one that is sent again because its answer was lost.
CREATE TABLE spinney_ledger.keys (
    key text PRIMARY KEY,
    number bigint NOT NULL,
    made_by text NOT NULL,
    digest text NOT NULL
);

-- ------------------------------------------------------------------------------------------------------ exact numbers

CREATE FUNCTION spinney_ledger.reduced(n numeric, d numeric) RETURNS spinney_ledger.fraction
LANGUAGE sql IMMUTABLE STRICT SET search_path = pg_catalog, pg_temp AS $$
    SELECT ROW(div(n, gcd(n, d)), div(d, gcd(n, d)))::spinney_ledger.fraction
$$;

CREATE FUNCTION spinney_ledger.plus(a spinney_ledger.fraction, b spinney_ledger.fraction)
RETURNS spinney_ledger.fraction
LANGUAGE sql IMMUTABLE STRICT SET search_path = pg_catalog, pg_temp AS $$
    SELECT spinney_ledger.reduced((a).n * (b).d + (b).n * (a).d, (a).d * (b).d)
$$;

CREATE FUNCTION spinney_ledger.is_at_most(a spinney_ledger.fraction, b spinney_ledger.fraction) RETURNS boolean
LANGUAGE sql IMMUTABLE STRICT SET search_path = pg_catalog, pg_temp AS $$
    SELECT (a).n * (b).d <= (b).n * (a).d
$$;

CREATE FUNCTION spinney_ledger.written(a spinney_ledger.fraction) RETURNS text
LANGUAGE sql IMMUTABLE SET search_path = pg_catalog, pg_temp AS $$
    SELECT CASE WHEN a IS NULL THEN NULL WHEN (a).d = 1 THEN (a).n::text ELSE (a).n::text || '/' || (a).d::text END
$$;

CREATE FUNCTION spinney_ledger.exact(given text, what text) RETURNS spinney_ledger.fraction
LANGUAGE plpgsql IMMUTABLE SET search_path = pg_catalog, pg_temp AS $$
DECLARE
    n numeric;
    d numeric := 1;
BEGIN
    IF given IS NULL OR given !~ '^[0-9]+(/[0-9]+)?$'
        OR greatest(length(split_part(given, '/', 1)), length(split_part(given, '/', 2))) > 780 THEN
        RAISE EXCEPTION USING ERRCODE = 'SP002', MESSAGE = what || ' is not an exact number such as 1/2, 0 or more';
    END IF;
    n := split_part(given, '/', 1)::numeric;
    IF given LIKE '%/%' THEN
        d := split_part(given, '/', 2)::numeric;
    END IF;
    IF d = 0 THEN
        RAISE EXCEPTION USING ERRCODE = 'SP002', MESSAGE = what || ' is not a number';
    END IF;
    RETURN spinney_ledger.reduced(n, d);
END
$$;

CREATE FUNCTION spinney_ledger.exact_epsilon(given text, smallest spinney_ledger.fraction, what text)
RETURNS spinney_ledger.fraction
LANGUAGE plpgsql IMMUTABLE SET search_path = pg_catalog, pg_temp AS $$
DECLARE
    found spinney_ledger.fraction := spinney_ledger.exact(given, what);
BEGIN
    IF (found).n <= 0 OR NOT spinney_ledger.is_at_most(smallest, found)
        OR NOT spinney_ledger.is_at_most(found, ROW(1048576, 1)::spinney_ledger.fraction) THEN
        RAISE EXCEPTION USING ERRCODE = 'SP002', MESSAGE = what || ' is not above 0 and at most 2^20';
    END IF;
    RETURN found;
END
$$;

CREATE FUNCTION spinney_ledger.exact_delta(given text) RETURNS spinney_ledger.fraction
LANGUAGE plpgsql IMMUTABLE SET search_path = pg_catalog, pg_temp AS $$
DECLARE
    found spinney_ledger.fraction := spinney_ledger.exact(given, 'delta');
BEGIN
    IF (found).n >= (found).d THEN
        RAISE EXCEPTION USING ERRCODE = 'SP002', MESSAGE = 'delta is 1 or more, which guarantees nothing';
    END IF;
    RETURN found;
END
$$;

-- ------------------------------------------------------------------------------------------------------------- texts

CREATE FUNCTION spinney_ledger.text_of(fields jsonb, name text, longest integer, is_needed boolean) RETURNS text
LANGUAGE plpgsql IMMUTABLE SET search_path = pg_catalog, pg_temp AS $$
BEGIN
    IF fields -> name IS NULL OR jsonb_typeof(fields -> name) = 'null' THEN
        IF NOT is_needed THEN
            RETURN NULL;
        END IF;
        RAISE EXCEPTION USING ERRCODE = 'SP002', MESSAGE = name || ' is missing';
    END IF;
    IF jsonb_typeof(fields -> name) <> 'string' OR (fields ->> name) !~ '[^ ]' OR char_length(fields ->> name) > longest
    THEN
        RAISE EXCEPTION USING ERRCODE = 'SP002',
            MESSAGE = name || ' is not a text of 1 to ' || longest || ' characters';
    END IF;
    RETURN fields ->> name;
END
$$;

CREATE FUNCTION spinney_ledger.hex_of(fields jsonb, name text, length integer, is_needed boolean) RETURNS text
LANGUAGE plpgsql IMMUTABLE SET search_path = pg_catalog, pg_temp AS $$
DECLARE
    found text := spinney_ledger.text_of(fields, name, 64, is_needed);
BEGIN
    IF found !~ ('^[0-9a-f]{' || length || '}$') THEN
        RAISE EXCEPTION USING ERRCODE = 'SP002', MESSAGE = name || ' is not one in hexadecimal digits';
    END IF;
    RETURN found;
END
$$;

CREATE FUNCTION spinney_ledger.flag_of(fields jsonb, name text) RETURNS boolean
LANGUAGE plpgsql IMMUTABLE SET search_path = pg_catalog, pg_temp AS $$
BEGIN
    IF fields -> name IS NULL OR jsonb_typeof(fields -> name) <> 'boolean' THEN
        RAISE EXCEPTION USING ERRCODE = 'SP002', MESSAGE = name || ' is not true or false';
    END IF;
    RETURN (fields ->> name)::boolean;
END
$$;

CREATE FUNCTION spinney_ledger.number_of(fields jsonb, name text, is_needed boolean) RETURNS bigint
LANGUAGE plpgsql IMMUTABLE SET search_path = pg_catalog, pg_temp AS $$
BEGIN
    IF (fields -> name IS NULL OR jsonb_typeof(fields -> name) = 'null') AND NOT is_needed THEN
        RETURN NULL;
    END IF;
    IF fields -> name IS NULL OR jsonb_typeof(fields -> name) <> 'number' OR (fields ->> name) !~ '^[1-9][0-9]{0,5}$' THEN
        RAISE EXCEPTION USING ERRCODE = 'SP002', MESSAGE = name || ' is not the number of an entry';
    END IF;
    RETURN (fields ->> name)::bigint;
END
$$;

-- ------------------------------------------------------------------------------------------------------------- rules

CREATE FUNCTION spinney_ledger.population_of(fields jsonb) RETURNS spinney_ledger.populations
LANGUAGE plpgsql SET search_path = pg_catalog, pg_temp AS $$
DECLARE
    result spinney_ledger.populations;
BEGIN
    SELECT * INTO result FROM spinney_ledger.populations p
        WHERE p.name = spinney_ledger.text_of(fields, 'population', 200, true);
    IF NOT FOUND THEN
        RAISE EXCEPTION USING ERRCODE = 'SP002', MESSAGE = 'this ledger has no such population';
    END IF;
    RETURN result;
END
$$;

-- Limits of epsilon and of delta: both, or neither.
CREATE FUNCTION spinney_ledger.limits_of(
    fields jsonb, OUT epsilon spinney_ledger.fraction, OUT delta spinney_ledger.fraction
)
LANGUAGE plpgsql SET search_path = pg_catalog, pg_temp AS $$
BEGIN
    IF fields ->> 'epsilon' IS NULL AND fields ->> 'delta' IS NULL THEN
        epsilon := NULL;
        delta := NULL;
        RETURN;
    END IF;
    epsilon := spinney_ledger.exact_epsilon(
        fields ->> 'epsilon', ROW(1, 1073741824)::spinney_ledger.fraction, 'the limit of epsilon'
    );
    delta := spinney_ledger.exact_delta(fields ->> 'delta');
END
$$;

CREATE FUNCTION spinney_ledger.check_table(table_name text, population_name text) RETURNS void
LANGUAGE plpgsql SET search_path = pg_catalog, pg_temp AS $$
BEGIN
    IF EXISTS (
        SELECT FROM spinney_ledger.tables t WHERE t.name = table_name AND t.population <> population_name
    ) THEN
        RAISE EXCEPTION USING ERRCODE = 'SP002',
            MESSAGE = 'the table belongs to another population; the same people would have two budgets';
    END IF;
END
$$;

-- What events cost together. Each kind says its epsilon, and those that are not pure their delta.
CREATE FUNCTION spinney_ledger.cost_of(
    events jsonb, are_brands boolean, OUT epsilon spinney_ledger.fraction, OUT delta spinney_ledger.fraction
)
LANGUAGE plpgsql SET search_path = pg_catalog, pg_temp AS $$
DECLARE
    event jsonb;
    kind text;
BEGIN
    epsilon := ROW(0, 1);
    delta := ROW(0, 1);
    IF jsonb_typeof(events) <> 'array' OR jsonb_array_length(events) NOT BETWEEN 1 AND 256 THEN
        RAISE EXCEPTION USING ERRCODE = 'SP002', MESSAGE = 'events is not a list of 1 to 256 events';
    END IF;
    FOR event IN SELECT * FROM jsonb_array_elements(events) LOOP
        kind := event ->> 'event';
        IF kind IS NULL OR (kind IN ('NotPrivate', 'UnsafeEntropy')) <> are_brands OR kind NOT IN (
            'DiscreteLaplaceCounts', 'LeafMoments', 'SplitDecisions', 'DiscreteGaussianVector', 'Selection',
            'PartitionSelection', 'ComposedRelease', 'NotPrivate', 'UnsafeEntropy'
        ) THEN
            RAISE EXCEPTION USING ERRCODE = 'SP002', MESSAGE = 'an event is not of a kind that belongs here';
        END IF;
        IF are_brands THEN
            CONTINUE;
        END IF;
        IF jsonb_typeof(event -> 'epsilon') <> 'string' OR (event ? 'delta') <> (
            kind IN ('DiscreteGaussianVector', 'PartitionSelection', 'ComposedRelease')
        ) OR jsonb_typeof(event -> 'delta') <> 'string' THEN
            RAISE EXCEPTION USING ERRCODE = 'SP002', MESSAGE = 'an event does not say its epsilon and delta';
        END IF;
        epsilon := spinney_ledger.plus(
            epsilon, spinney_ledger.exact_epsilon(event ->> 'epsilon', ROW(0, 1)::spinney_ledger.fraction, 'epsilon')
        );
        IF event ? 'delta' THEN
            delta := spinney_ledger.plus(delta, spinney_ledger.exact_delta(event ->> 'delta'));
        END IF;
    END LOOP;
    IF greatest(
        length((epsilon).n::text), length((epsilon).d::text), length((delta).n::text), length((delta).d::text)
    ) > 780 THEN
        RAISE EXCEPTION USING ERRCODE = 'SP001', MESSAGE = 'the sum of these charges has too many digits';
    END IF;
END
$$;

-- A charge that may be made now, as it is written down; what follows from it is taken in.
CREATE FUNCTION spinney_ledger.take_charge(fields jsonb, next_number bigint, is_imported boolean) RETURNS jsonb
LANGUAGE plpgsql SET search_path = pg_catalog, pg_temp AS $$
DECLARE
    population spinney_ledger.populations := spinney_ledger.population_of(fields);
    events jsonb := spinney_ledger.text_of(fields, 'events', 1000000, true)::jsonb;
    table_name text := spinney_ledger.text_of(fields, 'table', 200, false);
    schema_digest text := spinney_ledger.hex_of(fields, 'schema', 64, false);
    purpose text := spinney_ledger.text_of(fields, 'purpose', 2000, false);
    fit_key text := spinney_ledger.hex_of(fields, 'fit', 32, true);
    request_number bigint := spinney_ledger.number_of(fields, 'request', false);
    cost record;
    spent spinney_ledger.fraction;
    spent_delta spinney_ledger.fraction;
    bound spinney_ledger.tables;
    fit spinney_ledger.fits;
    request spinney_ledger.requests;
    in_all spinney_ledger.fraction;
    in_all_delta spinney_ledger.fraction;
BEGIN
    SELECT * INTO cost FROM spinney_ledger.cost_of(events, false);
    IF fields ->> 'unit' IS DISTINCT FROM population.unit THEN
        RAISE EXCEPTION USING ERRCODE = 'SP002',
            MESSAGE = 'the unit of the charge does not match the ledger''s; budgets in different units do not add up';
    END IF;
    IF table_name IS NOT NULL THEN
        PERFORM spinney_ledger.check_table(table_name, population.name);
        SELECT * INTO bound FROM spinney_ledger.tables t WHERE t.name = table_name;
        IF bound.schema IS NOT NULL AND schema_digest IS NOT NULL AND bound.schema <> schema_digest THEN
            RAISE EXCEPTION USING ERRCODE = 'SP002', MESSAGE = 'the table is bound to another schema';
        END IF;
    END IF;
    IF NOT coalesce(bound.is_bound, false) AND EXISTS (
        SELECT FROM spinney_ledger.schemas s WHERE s.digest = schema_digest AND s.population <> population.name
    ) THEN
        RAISE EXCEPTION USING ERRCODE = 'SP002',
            MESSAGE = 'a table of the same schema was charged to another population; name it and have it bound first';
    END IF;

    spent := spinney_ledger.plus(population.epsilon_spent, cost.epsilon);
    spent_delta := spinney_ledger.plus(population.delta_spent, cost.delta);
    IF NOT is_imported THEN
        IF population.epsilon_limit IS NOT NULL AND NOT spinney_ledger.is_at_most(spent, population.epsilon_limit) THEN
            RAISE EXCEPTION USING ERRCODE = 'SP001', MESSAGE = 'epsilon=' || spinney_ledger.written(cost.epsilon)
                || ' does not fit: ' || spinney_ledger.written(population.epsilon_spent) || ' of '
                || spinney_ledger.written(population.epsilon_limit) || ' is spent';
        END IF;
        IF population.delta_limit IS NOT NULL AND NOT spinney_ledger.is_at_most(spent_delta, population.delta_limit) THEN
            RAISE EXCEPTION USING ERRCODE = 'SP001', MESSAGE = 'delta=' || spinney_ledger.written(cost.delta)
                || ' does not fit: ' || spinney_ledger.written(population.delta_spent) || ' of '
                || spinney_ledger.written(population.delta_limit) || ' is spent';
        END IF;
    END IF;
    IF greatest(length((spent).d::text), length((spent_delta).d::text)) > 3100 THEN
        RAISE EXCEPTION USING ERRCODE = 'SP001', MESSAGE = 'the sum of all charges has too many digits';
    END IF;

    SELECT * INTO fit FROM spinney_ledger.fits f WHERE f.key = fit_key;
    IF FOUND AND (
        fit.population <> population.name OR fit.made_by <> session_user OR fit.request IS DISTINCT FROM request_number
        OR fit.is_ended
    ) THEN
        RAISE EXCEPTION USING ERRCODE = 'SP002',
            MESSAGE = 'the charges of one fit have one population, one user and one request, and end with it';
    END IF;
    in_all := spinney_ledger.plus(coalesce(fit.epsilon, ROW(0, 1)::spinney_ledger.fraction), cost.epsilon);
    in_all_delta := spinney_ledger.plus(coalesce(fit.delta, ROW(0, 1)::spinney_ledger.fraction), cost.delta);
    IF request_number IS NULL THEN
        IF population.approval AND NOT is_imported THEN
            RAISE EXCEPTION USING ERRCODE = 'SP001',
                MESSAGE = 'charges to this population need an approved request, and none was named';
        END IF;
    ELSE
        SELECT * INTO request FROM spinney_ledger.requests r
            WHERE r.number = request_number AND r.population = population.name;
        IF NOT FOUND OR request.state NOT IN ('approved', 'used') OR request.made_by <> session_user
            OR (request.fit IS NOT NULL AND request.fit <> fit_key)
            OR (request.for_table IS NOT NULL AND request.for_table IS DISTINCT FROM table_name)
            OR purpose <> request.purpose
            OR NOT spinney_ledger.is_at_most(in_all, request.epsilon)
            OR NOT spinney_ledger.is_at_most(in_all_delta, request.delta) THEN
            RAISE EXCEPTION USING ERRCODE = 'SP001', MESSAGE = 'request ' || request_number
                || ' is not one of this user that is approved, unused, for this table and purpose, and sufficient';
        END IF;
        purpose := request.purpose;
        UPDATE spinney_ledger.requests r SET state = 'used', fit = fit_key WHERE r.number = request_number;
    END IF;

    UPDATE spinney_ledger.populations p SET epsilon_spent = spent, delta_spent = spent_delta
        WHERE p.name = population.name;
    INSERT INTO spinney_ledger.fits AS f VALUES (
        fit_key, population.name, session_user, request_number, in_all, in_all_delta, false
    ) ON CONFLICT (key) DO UPDATE SET epsilon = in_all, delta = in_all_delta;
    IF table_name IS NOT NULL THEN
        INSERT INTO spinney_ledger.tables VALUES (table_name, population.name, NULL, false) ON CONFLICT DO NOTHING;
    END IF;
    IF schema_digest IS NOT NULL THEN
        INSERT INTO spinney_ledger.schemas VALUES (schema_digest, population.name) ON CONFLICT DO NOTHING;
    END IF;
    RETURN jsonb_build_object(
        'key', fields ->> 'key', 'fit', fit_key, 'population', population.name, 'unit', population.unit,
        'table', table_name, 'schema', schema_digest, 'purpose', purpose, 'request', request_number,
        'imported', is_imported, 'epsilon', spinney_ledger.written(cost.epsilon),
        'delta', spinney_ledger.written(cost.delta), 'events', events::text
    );
END
$$;

-- What an entry says once it has been checked, for every kind but charges; what follows from it is taken in.
CREATE FUNCTION spinney_ledger.take(kind text, fields jsonb, next_number bigint) RETURNS jsonb
LANGUAGE plpgsql SET search_path = pg_catalog, pg_temp AS $$
DECLARE
    population spinney_ledger.populations;
    limits record;
    wanted record;
    request spinney_ledger.requests;
    fit spinney_ledger.fits;
    given_name text;
    schema_digest text;
    zero spinney_ledger.fraction := ROW(0, 1);
BEGIN
    IF kind = 'population' THEN
        given_name := spinney_ledger.text_of(fields, 'population', 200, true);
        SELECT * INTO limits FROM spinney_ledger.limits_of(fields);
        IF fields ->> 'unit' IS NULL
            OR fields ->> 'unit' NOT IN ('replace-one', 'add-remove', 'replace-one-person', 'add-remove-person') THEN
            RAISE EXCEPTION USING ERRCODE = 'SP002', MESSAGE = 'unit is not a unit of privacy';
        END IF;
        IF EXISTS (SELECT FROM spinney_ledger.populations p WHERE p.name = given_name) THEN
            RAISE EXCEPTION USING ERRCODE = 'SP002', MESSAGE = 'the population exists already; choose another name';
        END IF;
        IF EXISTS (SELECT FROM spinney_ledger.populations p WHERE p.imported = fields ->> 'imported') THEN
            RAISE EXCEPTION USING ERRCODE = 'SP002',
                MESSAGE = 'this ledger was imported already; a copy of it would have the rest once more';
        END IF;
        INSERT INTO spinney_ledger.populations VALUES (
            given_name, fields ->> 'unit', limits.epsilon, limits.delta, zero, zero, spinney_ledger.flag_of(fields, 'approval'),
            spinney_ledger.hex_of(fields, 'imported', 32, false)
        );
        RETURN jsonb_build_object(
            'population', given_name, 'unit', fields ->> 'unit', 'epsilon', spinney_ledger.written(limits.epsilon),
            'delta', spinney_ledger.written(limits.delta), 'approval', spinney_ledger.flag_of(fields, 'approval'),
            'imported', spinney_ledger.hex_of(fields, 'imported', 32, false)
        );
    END IF;

    IF kind IN ('approval', 'denial') THEN
        SELECT * INTO request FROM spinney_ledger.requests r
            WHERE r.number = spinney_ledger.number_of(fields, 'request', true);
        IF NOT FOUND OR request.state <> 'pending' THEN
            RAISE EXCEPTION USING ERRCODE = 'SP002', MESSAGE = 'there is no such request, or it is decided already';
        END IF;
        IF kind = 'approval' AND request.made_by = session_user THEN
            RAISE EXCEPTION USING ERRCODE = 'SP002',
                MESSAGE = 'the request is by ' || session_user || ', and somebody else has to approve it';
        END IF;
        UPDATE spinney_ledger.requests r
            SET state = CASE kind WHEN 'approval' THEN 'approved' ELSE 'denied' END WHERE r.number = request.number;
        RETURN jsonb_build_object('request', request.number)
            || CASE kind WHEN 'approval' THEN '{}'
                ELSE jsonb_build_object('why', spinney_ledger.text_of(fields, 'why', 2000, true)) END;
    END IF;

    IF kind IN ('released', 'failed') THEN
        SELECT * INTO fit FROM spinney_ledger.fits f WHERE f.key = spinney_ledger.hex_of(fields, 'fit', 32, true);
        IF NOT FOUND OR fit.made_by <> session_user OR fit.is_ended THEN
            RAISE EXCEPTION USING ERRCODE = 'SP002',
                MESSAGE = 'this user has no such fit, or what came of it is on record already';
        END IF;
        UPDATE spinney_ledger.fits f SET is_ended = true WHERE f.key = fit.key;
        RETURN jsonb_build_object('fit', fit.key) || CASE kind
            WHEN 'released' THEN jsonb_build_object('release', spinney_ledger.hex_of(fields, 'release', 64, true))
            ELSE jsonb_build_object('error', spinney_ledger.text_of(fields, 'error', 200, true)) END;
    END IF;

    population := spinney_ledger.population_of(fields);
    CASE kind
    WHEN 'limit' THEN
        SELECT * INTO limits FROM spinney_ledger.limits_of(fields);
        UPDATE spinney_ledger.populations p SET epsilon_limit = limits.epsilon, delta_limit = limits.delta
            WHERE p.name = population.name;
        RETURN jsonb_build_object(
            'population', population.name, 'epsilon', spinney_ledger.written(limits.epsilon),
            'delta', spinney_ledger.written(limits.delta), 'why', spinney_ledger.text_of(fields, 'why', 2000, true)
        );
    WHEN 'policy' THEN
        UPDATE spinney_ledger.populations p SET approval = spinney_ledger.flag_of(fields, 'approval')
            WHERE p.name = population.name;
        RETURN jsonb_build_object(
            'population', population.name, 'approval', spinney_ledger.flag_of(fields, 'approval'),
            'why', spinney_ledger.text_of(fields, 'why', 2000, true)
        );
    WHEN 'table' THEN
        given_name := spinney_ledger.text_of(fields, 'table', 200, true);
        schema_digest := spinney_ledger.hex_of(fields, 'schema', 64, false);
        PERFORM spinney_ledger.check_table(given_name, population.name);
        INSERT INTO spinney_ledger.tables AS t VALUES (given_name, population.name, schema_digest, true)
            ON CONFLICT ON CONSTRAINT tables_pkey DO UPDATE SET schema = schema_digest, is_bound = true;
        IF schema_digest IS NOT NULL THEN
            INSERT INTO spinney_ledger.schemas VALUES (schema_digest, population.name) ON CONFLICT DO NOTHING;
        END IF;
        RETURN jsonb_build_object('population', population.name, 'table', given_name, 'schema', schema_digest);
    WHEN 'request' THEN
        given_name := spinney_ledger.text_of(fields, 'table', 200, false);
        IF given_name IS NOT NULL THEN
            PERFORM spinney_ledger.check_table(given_name, population.name);
        END IF;
        SELECT
            spinney_ledger.exact_epsilon(fields ->> 'epsilon', zero, 'epsilon') AS epsilon,
            spinney_ledger.exact_delta(fields ->> 'delta') AS delta
            INTO wanted;
        INSERT INTO spinney_ledger.requests VALUES (
            next_number, population.name, given_name, wanted.epsilon, wanted.delta, session_user, 'pending', NULL,
            spinney_ledger.text_of(fields, 'purpose', 2000, true)
        );
        RETURN jsonb_build_object(
            'population', population.name, 'table', given_name, 'epsilon', spinney_ledger.written(wanted.epsilon),
            'delta', spinney_ledger.written(wanted.delta),
            'purpose', spinney_ledger.text_of(fields, 'purpose', 2000, true)
        );
    WHEN 'brand' THEN
        PERFORM spinney_ledger.cost_of(spinney_ledger.text_of(fields, 'events', 1000000, true)::jsonb, true);
        IF EXISTS (
            SELECT FROM spinney_ledger.fits f
            WHERE f.key = spinney_ledger.hex_of(fields, 'fit', 32, true) AND f.population <> population.name
        ) THEN
            RAISE EXCEPTION USING ERRCODE = 'SP002', MESSAGE = 'the entries of one fit have one population';
        END IF;
        RETURN jsonb_build_object(
            'key', fields ->> 'key', 'fit', spinney_ledger.hex_of(fields, 'fit', 32, true),
            'population', population.name,
            'events', (spinney_ledger.text_of(fields, 'events', 1000000, true)::jsonb)::text
        );
    ELSE
        RAISE EXCEPTION USING ERRCODE = 'SP002', MESSAGE = 'there is no such kind of entry';
    END CASE;
END
$$;

-- ------------------------------------------------------------------------------------------------------------ writing

CREATE FUNCTION spinney_ledger.append(
    kind text, fields jsonb, spinney_version text, entry_key text, is_imported boolean
) RETURNS spinney_ledger.entries
LANGUAGE plpgsql SET search_path = pg_catalog, pg_temp AS $$
DECLARE
    head spinney_ledger.head;
    known spinney_ledger.keys;
    result spinney_ledger.entries;
    taken jsonb;
    call_digest text;
BEGIN
    SELECT * INTO STRICT head FROM spinney_ledger.head FOR UPDATE;
    -- A charge is durable when its transaction ends, and nobody keeps others waiting by forgetting to end one.
    PERFORM set_config('synchronous_commit', 'on', true);
    PERFORM set_config('idle_in_transaction_session_timeout', '60s', true);
    IF fields IS NULL OR jsonb_typeof(fields) <> 'object' OR octet_length(fields::text) > 2000000
        OR entry_key IS NULL OR entry_key !~ '^[0-9a-f]{32}$'
        OR spinney_version IS NULL OR spinney_version !~ '^[0-9A-Za-z.+_-]{1,50}$'
        OR ((kind IN ('charge', 'brand')) AND fields ->> 'key' IS DISTINCT FROM entry_key) THEN
        RAISE EXCEPTION USING ERRCODE = 'SP002', MESSAGE = 'an entry is not what this ledger takes';
    END IF;
    call_digest := encode(sha256(convert_to(kind || ' ' || fields::text, 'UTF8')), 'hex');
    SELECT * INTO known FROM spinney_ledger.keys k WHERE k.key = entry_key;
    IF FOUND THEN
        IF known.made_by <> session_user OR known.digest <> call_digest THEN
            RAISE EXCEPTION USING ERRCODE = 'SP002', MESSAGE = 'this key is on record already, for something else';
        END IF;
        SELECT * INTO STRICT result FROM spinney_ledger.entries e WHERE e.number = known.number;
        RETURN result;
    END IF;
    IF head.number >= 1000000 THEN
        RAISE EXCEPTION USING ERRCODE = 'SP001', MESSAGE = 'a ledger has at most 1,000,000 entries; begin another';
    END IF;

    result.number := head.number + 1;
    IF kind = 'opened' AND head.number = 0 THEN
        taken := fields;
    ELSIF kind = 'charge' THEN
        taken := spinney_ledger.take_charge(fields, result.number, is_imported);
    ELSE
        taken := spinney_ledger.take(kind, fields, result.number);
    END IF;
    result.content := (jsonb_build_object(
        'number', result.number, 'previous', head.hash, 'kind', kind, 'user', session_user, 'spinney', spinney_version,
        'time', to_char(clock_timestamp() AT TIME ZONE 'UTC', 'YYYY-MM-DD"T"HH24:MI:SS.US"Z"')
    ) || taken)::text;
    result.hash := encode(sha256(convert_to(result.content, 'UTF8')), 'hex');
    INSERT INTO spinney_ledger.entries VALUES (result.number, result.content, result.hash);
    INSERT INTO spinney_ledger.keys VALUES (entry_key, result.number, session_user, call_digest);
    UPDATE spinney_ledger.head SET number = result.number, hash = result.hash;
    RETURN result;
END
$$;

CREATE FUNCTION spinney_ledger.analyst_append(kind text, fields jsonb, spinney_version text, entry_key text)
RETURNS spinney_ledger.entries
LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
BEGIN
    IF kind IS NULL OR kind NOT IN ('request', 'charge', 'brand', 'released', 'failed') THEN
        RAISE EXCEPTION USING ERRCODE = '42501', MESSAGE = 'an analyst may request and charge, and nothing else';
    END IF;
    RETURN spinney_ledger.append(kind, fields, spinney_version, entry_key, false);
END
$$;

CREATE FUNCTION spinney_ledger.keeper_append(kind text, fields jsonb, spinney_version text, entry_key text)
RETURNS spinney_ledger.entries
LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
BEGIN
    IF kind IS NULL OR kind NOT IN (
        'population', 'limit', 'policy', 'table', 'approval', 'denial', 'charge', 'brand'
    ) THEN
        RAISE EXCEPTION USING ERRCODE = '42501', MESSAGE = 'this is not a keeper''s to write';
    END IF;
    RETURN spinney_ledger.append(kind, fields, spinney_version, entry_key, true);
END
$$;

-- ---------------------------------------------------------------------------------------------------- who may do what

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

DO $$
DECLARE
    role text;
BEGIN
    FOREACH role IN ARRAY ARRAY['spinney_analyst', 'spinney_keeper'] LOOP
        IF NOT EXISTS (SELECT FROM pg_catalog.pg_roles r WHERE r.rolname = role) THEN
            EXECUTE format('CREATE ROLE %I NOLOGIN', role);
        END IF;
    END LOOP;
END
$$;

REVOKE ALL ON SCHEMA spinney_ledger FROM PUBLIC;
REVOKE ALL ON ALL TABLES IN SCHEMA spinney_ledger FROM PUBLIC;
REVOKE ALL ON ALL FUNCTIONS IN SCHEMA spinney_ledger FROM PUBLIC;
GRANT USAGE ON SCHEMA spinney_ledger TO spinney_analyst, spinney_keeper;
GRANT SELECT ON
    spinney_ledger.entries, spinney_ledger.head, spinney_ledger.populations, spinney_ledger.tables,
    spinney_ledger.requests, spinney_ledger.fits
    TO spinney_analyst, spinney_keeper;
GRANT EXECUTE ON FUNCTION spinney_ledger.analyst_append TO spinney_analyst;
GRANT EXECUTE ON FUNCTION spinney_ledger.keeper_append TO spinney_keeper;
