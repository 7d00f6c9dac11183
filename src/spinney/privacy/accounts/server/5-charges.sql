-- The rules of charges, of brands and of what came of them (`charging.py`).

-- The table and the schema of a charge belong to its population.
CREATE FUNCTION spinney_ledger.check_place(table_name text, schema_digest text, population_name text) RETURNS void
LANGUAGE plpgsql SET search_path = pg_catalog, pg_temp AS $$
DECLARE
    bound spinney_ledger.tables;
BEGIN
    IF table_name IS NOT NULL THEN
        PERFORM spinney_ledger.check_table(table_name, population_name);
        SELECT * INTO bound FROM spinney_ledger.tables t WHERE t.name = table_name;
        IF bound.schema IS NOT NULL AND schema_digest IS NOT NULL AND bound.schema <> schema_digest THEN
            RAISE EXCEPTION USING ERRCODE = 'SP002', MESSAGE = 'the table is bound to another schema';
        END IF;
    END IF;
    IF NOT coalesce(bound.is_bound, false) AND EXISTS (
        SELECT FROM spinney_ledger.schemas s WHERE s.digest = schema_digest AND s.population <> population_name
    ) THEN
        RAISE EXCEPTION USING ERRCODE = 'SP002',
            MESSAGE = 'a table of the same schema was charged to another population; name it and have it bound first';
    END IF;
END
$$;

-- The sums of a population after a charge are within its limits.
CREATE FUNCTION spinney_ledger.check_limits(
    population spinney_ledger.populations, epsilon spinney_ledger.fraction, delta spinney_ledger.fraction,
    spent spinney_ledger.fraction, spent_delta spinney_ledger.fraction
) RETURNS void
LANGUAGE plpgsql SET search_path = pg_catalog, pg_temp AS $$
BEGIN
    IF population.moved_to IS NOT NULL THEN
        RAISE EXCEPTION USING ERRCODE = 'SP001', MESSAGE = 'the population is closed here: it was moved to '
            || population.moved_to || '; charge it there';
    END IF;
    IF population.epsilon_limit IS NOT NULL AND NOT spinney_ledger.is_at_most(spent, population.epsilon_limit) THEN
        RAISE EXCEPTION USING ERRCODE = 'SP001', MESSAGE = 'epsilon=' || spinney_ledger.written(epsilon)
            || ' does not fit: ' || spinney_ledger.written(population.epsilon_spent) || ' of '
            || spinney_ledger.written(population.epsilon_limit) || ' is spent';
    END IF;
    IF population.delta_limit IS NOT NULL AND NOT spinney_ledger.is_at_most(spent_delta, population.delta_limit) THEN
        RAISE EXCEPTION USING ERRCODE = 'SP001', MESSAGE = 'delta=' || spinney_ledger.written(delta)
            || ' does not fit: ' || spinney_ledger.written(population.delta_spent) || ' of '
            || spinney_ledger.written(population.delta_limit) || ' is spent';
    END IF;
END
$$;

-- The purpose of a charge: what was said, or else what was asked for; an error where its request may not pay for it.
CREATE FUNCTION spinney_ledger.paid_purpose(
    population spinney_ledger.populations, request_number bigint, fit_key text, table_name text, given_purpose text,
    in_all spinney_ledger.fraction, in_all_delta spinney_ledger.fraction
) RETURNS text
LANGUAGE plpgsql SET search_path = pg_catalog, pg_temp AS $$
DECLARE
    request spinney_ledger.requests;
BEGIN
    IF request_number IS NULL THEN
        IF population.approval THEN
            RAISE EXCEPTION USING ERRCODE = 'SP001',
                MESSAGE = 'charges to this population need an approved request, and none was named';
        END IF;
        RETURN given_purpose;
    END IF;
    SELECT * INTO request FROM spinney_ledger.requests r WHERE r.number = request_number;
    IF NOT FOUND OR request.population <> population.name OR request.state NOT IN ('approved', 'used')
        OR (request.fit IS NOT NULL AND request.fit <> fit_key) OR request.made_by <> session_user
        OR (request.for_table IS NOT NULL AND request.for_table IS DISTINCT FROM table_name)
        OR given_purpose <> request.purpose
        OR NOT spinney_ledger.is_at_most(in_all, request.epsilon)
        OR NOT spinney_ledger.is_at_most(in_all_delta, request.delta) THEN
        RAISE EXCEPTION USING ERRCODE = 'SP001', MESSAGE = 'request ' || request_number
            || ' is not one of this user that is approved, unused, for this table and purpose, and sufficient';
    END IF;
    UPDATE spinney_ledger.requests r SET state = 'used', fit = fit_key WHERE r.number = request_number;
    RETURN request.purpose;
END
$$;

CREATE FUNCTION spinney_ledger.take_charge(fields jsonb, is_imported boolean) RETURNS jsonb
LANGUAGE plpgsql SET search_path = pg_catalog, pg_temp AS $$
DECLARE
    population spinney_ledger.populations := spinney_ledger.population_of(fields);
    events text := spinney_ledger.events_of(fields, 'charge');
    table_name text := spinney_ledger.text_of(fields, 'table', 200, false);
    schema_digest text := spinney_ledger.hex_of(fields, 'schema', 64, false);
    purpose text := spinney_ledger.text_of(fields, 'purpose', 2000, false);
    fit_key text := spinney_ledger.hex_of(fields, 'fit', 32, true);
    request_number bigint := CASE WHEN NOT is_imported THEN spinney_ledger.number_of(fields, 'request', false) END;
    zero spinney_ledger.fraction := ROW(0, 1);
    cost record;
    fit spinney_ledger.fits;
    before record;
    in_all spinney_ledger.fraction;
    in_all_delta spinney_ledger.fraction;
    spent spinney_ledger.fraction;
    spent_delta spinney_ledger.fraction;
BEGIN
    SELECT * INTO cost FROM spinney_ledger.cost_of(events::jsonb);
    IF fields ->> 'unit' IS DISTINCT FROM population.unit THEN
        RAISE EXCEPTION USING ERRCODE = 'SP002',
            MESSAGE = 'the unit of the charge does not match the ledger''s; budgets in different units do not add up';
    END IF;
    SELECT * INTO fit FROM spinney_ledger.fits f WHERE f.key = fit_key;
    IF FOUND AND (
        fit.population <> population.name OR fit.made_by <> session_user OR fit.is_ended
        OR ((fit.epsilon).n > 0 AND fit.request IS DISTINCT FROM request_number)
    ) THEN
        RAISE EXCEPTION USING ERRCODE = 'SP002',
            MESSAGE = 'the charges of one fit have one population, one user and one request, and end with it';
    END IF;

    -- A population is charged what its fits count as, each rounded up once.
    SELECT coalesce(fit.epsilon, zero) AS epsilon, coalesce(fit.delta, zero) AS delta INTO before;
    in_all := spinney_ledger.plus(before.epsilon, cost.epsilon);
    in_all_delta := spinney_ledger.plus(before.delta, cost.delta);
    PERFORM spinney_ledger.check_digits(in_all, 3100);
    PERFORM spinney_ledger.check_digits(in_all_delta, 3100);
    spent := spinney_ledger.plus(spinney_ledger.minus(
        spinney_ledger.counted(in_all), spinney_ledger.counted(before.epsilon)), population.epsilon_spent);
    spent_delta := spinney_ledger.plus(spinney_ledger.minus(
        spinney_ledger.counted(in_all_delta), spinney_ledger.counted(before.delta)), population.delta_spent);
    IF is_imported THEN
        PERFORM spinney_ledger.check_importing(population.name);
    ELSE
        PERFORM spinney_ledger.check_composed(events::jsonb);
        PERFORM spinney_ledger.check_place(table_name, schema_digest, population.name);
        PERFORM spinney_ledger.check_limits(population, cost.epsilon, cost.delta, spent, spent_delta);
        purpose := spinney_ledger.paid_purpose(
            population, request_number, fit_key, table_name, purpose, in_all, in_all_delta
        );
    END IF;

    UPDATE spinney_ledger.populations p SET epsilon_spent = spent, delta_spent = spent_delta
        WHERE p.name = population.name;
    INSERT INTO spinney_ledger.fits AS f VALUES (
        fit_key, population.name, session_user, request_number, in_all, in_all_delta, 0, false
    ) ON CONFLICT (key) DO UPDATE SET epsilon = in_all, delta = in_all_delta, request = request_number;
    IF table_name IS NOT NULL THEN
        INSERT INTO spinney_ledger.tables VALUES (table_name, population.name, NULL, false) ON CONFLICT DO NOTHING;
    END IF;
    IF schema_digest IS NOT NULL THEN
        INSERT INTO spinney_ledger.schemas VALUES (schema_digest, population.name, false) ON CONFLICT DO NOTHING;
    END IF;
    RETURN jsonb_build_object(
        'key', fields ->> 'key', 'fit', fit_key, 'population', population.name, 'unit', population.unit,
        'table', table_name, 'schema', schema_digest, 'purpose', purpose, 'request', request_number,
        'imported', is_imported, 'epsilon', spinney_ledger.written(cost.epsilon),
        'delta', spinney_ledger.written(cost.delta), 'events', events
    );
END
$$;

-- A brand is of a fit of the same user that has not ended, or begins one.
CREATE FUNCTION spinney_ledger.take_brand(fields jsonb, is_imported boolean) RETURNS jsonb
LANGUAGE plpgsql SET search_path = pg_catalog, pg_temp AS $$
DECLARE
    population spinney_ledger.populations := spinney_ledger.population_of(fields);
    events text := spinney_ledger.events_of(fields, 'brand');
    fit_key text := spinney_ledger.hex_of(fields, 'fit', 32, true);
    zero spinney_ledger.fraction := ROW(0, 1);
    fit spinney_ledger.fits;
BEGIN
    IF is_imported THEN
        PERFORM spinney_ledger.check_importing(population.name);
    ELSIF octet_length(events) > 4000 THEN
        RAISE EXCEPTION USING ERRCODE = 'SP002', MESSAGE = 'a brand is longer than 4,000 bytes; shorten its note';
    END IF;
    SELECT * INTO fit FROM spinney_ledger.fits f WHERE f.key = fit_key;
    IF FOUND THEN
        IF fit.population <> population.name OR fit.made_by <> session_user OR fit.is_ended THEN
            RAISE EXCEPTION USING ERRCODE = 'SP002',
                MESSAGE = 'the entries of one fit have one population and one user, and end with it';
        END IF;
        IF fit.n_brands >= 64 AND NOT is_imported THEN
            RAISE EXCEPTION USING ERRCODE = 'SP002', MESSAGE = 'this fit has 64 brands already';
        END IF;
        UPDATE spinney_ledger.fits f SET n_brands = n_brands + 1 WHERE f.key = fit_key;
    ELSE
        IF NOT is_imported AND (
            SELECT count(*) FROM spinney_ledger.fits f WHERE f.made_by = session_user AND (f.epsilon).n = 0
        ) >= 100 THEN
            RAISE EXCEPTION USING ERRCODE = 'SP002',
                MESSAGE = 'this user has 100 brands of fits that charged nothing; charge first';
        END IF;
        INSERT INTO spinney_ledger.fits
            VALUES (fit_key, population.name, session_user, NULL, zero, zero, 1, false);
    END IF;
    RETURN jsonb_build_object('key', fields ->> 'key', 'fit', fit_key, 'population', population.name, 'events', events)
        || CASE WHEN is_imported THEN '{"imported": true}' ELSE '{}'::jsonb END;
END
$$;

CREATE FUNCTION spinney_ledger.take_end(kind text, fields jsonb, is_imported boolean) RETURNS jsonb
LANGUAGE plpgsql SET search_path = pg_catalog, pg_temp AS $$
DECLARE
    fit spinney_ledger.fits;
    given_digest text;
    taken jsonb;
BEGIN
    SELECT * INTO fit FROM spinney_ledger.fits f WHERE f.key = spinney_ledger.hex_of(fields, 'fit', 32, true);
    IF NOT FOUND OR fit.made_by <> session_user OR fit.is_ended OR (fit.epsilon).n = 0 THEN
        RAISE EXCEPTION USING ERRCODE = 'SP002',
            MESSAGE = 'this user has no such fit, or what came of it is on record already';
    END IF;
    IF is_imported THEN
        PERFORM spinney_ledger.check_importing(fit.population);
    END IF;
    IF kind = 'released' THEN
        given_digest := spinney_ledger.hex_of(fields, 'release', 64, true);
        IF NOT is_imported AND EXISTS (
            SELECT FROM spinney_ledger.releases r WHERE r.digest = given_digest AND r.made_by <> session_user
        ) THEN
            RAISE EXCEPTION USING ERRCODE = 'SP002', MESSAGE = 'this release is on record as somebody else''s';
        END IF;
        INSERT INTO spinney_ledger.releases VALUES (given_digest, session_user) ON CONFLICT DO NOTHING;
        taken := jsonb_build_object('release', given_digest);
    ELSE
        taken := jsonb_build_object('error', spinney_ledger.text_of(fields, 'error', 200, true));
    END IF;
    UPDATE spinney_ledger.fits f SET is_ended = true WHERE f.key = fit.key;
    RETURN jsonb_build_object('fit', fit.key) || taken
        || CASE WHEN is_imported THEN '{"imported": true}' ELSE '{}'::jsonb END;
END
$$;
