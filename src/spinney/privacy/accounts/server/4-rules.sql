-- The rules of all entries but charges (`rules.py`): what may come next, as it is written down; what follows from it is
-- taken in.

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

-- What is imported belongs to the population that is being imported: it passes limits and approval, and cannot be added
-- to any other.
CREATE FUNCTION spinney_ledger.check_importing(population_name text) RETURNS void
LANGUAGE plpgsql SET search_path = pg_catalog, pg_temp AS $$
BEGIN
    IF (SELECT h.importing FROM spinney_ledger.head h) IS DISTINCT FROM population_name THEN
        RAISE EXCEPTION USING ERRCODE = 'SP002',
            MESSAGE = 'what is imported follows the entry of its population, with nothing in between';
    END IF;
END
$$;

CREATE FUNCTION spinney_ledger.take_population(fields jsonb) RETURNS jsonb
LANGUAGE plpgsql SET search_path = pg_catalog, pg_temp AS $$
DECLARE
    given_name text := spinney_ledger.text_of(fields, 'population', 200, true);
    limits record;
    source text := spinney_ledger.hex_of(fields, 'imported', 32, false);
    source_population text := spinney_ledger.text_of(fields, 'imported_population', 200, source IS NOT NULL);
    source_head text := spinney_ledger.text_of(fields, 'imported_head', 100, source IS NOT NULL);
    zero spinney_ledger.fraction := ROW(0, 1);
BEGIN
    SELECT * INTO limits FROM spinney_ledger.limits_of(fields);
    IF fields ->> 'unit' IS NULL
        OR fields ->> 'unit' NOT IN ('replace-one', 'add-remove', 'replace-one-person', 'add-remove-person') THEN
        RAISE EXCEPTION USING ERRCODE = 'SP002', MESSAGE = 'unit is not a unit of privacy';
    END IF;
    IF EXISTS (SELECT FROM spinney_ledger.populations p WHERE p.name = given_name) THEN
        RAISE EXCEPTION USING ERRCODE = 'SP002', MESSAGE = 'the population exists already; choose another name';
    END IF;
    IF source IS NULL AND (source_population IS NOT NULL OR source_head IS NOT NULL) THEN
        RAISE EXCEPTION USING ERRCODE = 'SP002', MESSAGE = 'imported does not name a ledger';
    END IF;
    IF source_head !~ '^[1-9][0-9]{0,6}:[0-9a-f]{64}$' THEN
        RAISE EXCEPTION USING ERRCODE = 'SP002', MESSAGE = 'imported_head is not the head of a ledger';
    END IF;
    IF source = (SELECT h.ledger FROM spinney_ledger.head h) THEN
        RAISE EXCEPTION USING ERRCODE = 'SP002',
            MESSAGE = 'a ledger, or a copy of it, cannot be imported into itself; it would have the rest once more';
    END IF;
    IF EXISTS (
        SELECT FROM spinney_ledger.populations p
        WHERE p.imported_ledger = source AND p.imported_population = source_population
    ) THEN
        RAISE EXCEPTION USING ERRCODE = 'SP002',
            MESSAGE = 'this population was imported already; a copy of it would have the rest once more';
    END IF;
    INSERT INTO spinney_ledger.populations VALUES (
        given_name, fields ->> 'unit', limits.epsilon, limits.delta, zero, zero,
        spinney_ledger.flag_of(fields, 'approval'), NULL, source, source_population
    );
    RETURN jsonb_build_object(
        'population', given_name, 'unit', fields ->> 'unit', 'epsilon', spinney_ledger.written(limits.epsilon),
        'delta', spinney_ledger.written(limits.delta), 'approval', spinney_ledger.flag_of(fields, 'approval'),
        'imported', source
    ) || CASE WHEN source IS NULL THEN '{}' ELSE
        jsonb_build_object('imported_population', source_population, 'imported_head', source_head) END;
END
$$;

-- What a keeper says of a population that exists.
CREATE FUNCTION spinney_ledger.take_decision(kind text, fields jsonb) RETURNS jsonb
LANGUAGE plpgsql SET search_path = pg_catalog, pg_temp AS $$
DECLARE
    population spinney_ledger.populations := spinney_ledger.population_of(fields);
    limits record;
    given_name text;
    schema_digest text;
BEGIN
    CASE kind
    WHEN 'limit' THEN
        SELECT * INTO limits FROM spinney_ledger.limits_of(fields);
        UPDATE spinney_ledger.populations p
            SET epsilon_limit = limits.epsilon, delta_limit = limits.delta, moved_to = NULL
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
    WHEN 'closed' THEN
        IF population.moved_to IS NOT NULL THEN
            RAISE EXCEPTION USING ERRCODE = 'SP002', MESSAGE = 'the population is closed already';
        END IF;
        UPDATE spinney_ledger.populations p SET moved_to = spinney_ledger.text_of(fields, 'moved_to', 2000, true)
            WHERE p.name = population.name;
        RETURN jsonb_build_object(
            'population', population.name, 'moved_to', spinney_ledger.text_of(fields, 'moved_to', 2000, true),
            'ledger', spinney_ledger.hex_of(fields, 'ledger', 32, true)
        );
    WHEN 'table' THEN
        given_name := spinney_ledger.text_of(fields, 'table', 200, true);
        schema_digest := spinney_ledger.hex_of(fields, 'schema', 64, false);
        IF EXISTS (SELECT FROM spinney_ledger.tables t WHERE t.name = given_name AND t.is_bound) THEN
            PERFORM spinney_ledger.check_table(given_name, population.name);
        END IF;
        INSERT INTO spinney_ledger.tables AS t VALUES (given_name, population.name, schema_digest, true)
            ON CONFLICT ON CONSTRAINT tables_pkey
            DO UPDATE SET population = population.name, schema = schema_digest, is_bound = true;
        IF schema_digest IS NOT NULL THEN
            INSERT INTO spinney_ledger.schemas AS s VALUES (schema_digest, population.name, true)
                ON CONFLICT ON CONSTRAINT schemas_pkey
                DO UPDATE SET population = population.name, is_bound = true WHERE NOT s.is_bound;
        END IF;
        RETURN jsonb_build_object('population', population.name, 'table', given_name, 'schema', schema_digest);
    END CASE;
END
$$;

CREATE FUNCTION spinney_ledger.take_request(fields jsonb, next_number bigint) RETURNS jsonb
LANGUAGE plpgsql SET search_path = pg_catalog, pg_temp AS $$
DECLARE
    population spinney_ledger.populations := spinney_ledger.population_of(fields);
    table_name text := spinney_ledger.text_of(fields, 'table', 200, false);
    wanted record;
    purpose text := spinney_ledger.text_of(fields, 'purpose', 2000, true);
BEGIN
    IF table_name IS NOT NULL THEN
        PERFORM spinney_ledger.check_table(table_name, population.name);
    END IF;
    SELECT
        spinney_ledger.exact_epsilon(fields ->> 'epsilon', ROW(0, 1)::spinney_ledger.fraction, 'epsilon') AS epsilon,
        spinney_ledger.exact_delta(fields ->> 'delta') AS delta
        INTO wanted;
    IF (SELECT count(*) FROM spinney_ledger.requests r WHERE r.made_by = session_user AND r.state = 'pending') >= 100
    THEN
        RAISE EXCEPTION USING ERRCODE = 'SP002',
            MESSAGE = 'this user has 100 requests that nobody has decided on; wait for an answer to one of them';
    END IF;
    INSERT INTO spinney_ledger.requests VALUES (
        next_number, population.name, table_name, wanted.epsilon, wanted.delta, session_user, 'pending', NULL, purpose
    );
    RETURN jsonb_build_object(
        'population', population.name, 'table', table_name, 'epsilon', spinney_ledger.written(wanted.epsilon),
        'delta', spinney_ledger.written(wanted.delta), 'purpose', purpose
    );
END
$$;

CREATE FUNCTION spinney_ledger.take_answer(kind text, fields jsonb) RETURNS jsonb
LANGUAGE plpgsql SET search_path = pg_catalog, pg_temp AS $$
DECLARE
    request spinney_ledger.requests;
BEGIN
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
END
$$;
