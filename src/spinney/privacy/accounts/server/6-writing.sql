-- How an entry is written, by whom, and who may do what.

CREATE FUNCTION spinney_ledger.append(
    kind text, given json, spinney_version text, entry_key text, is_imported boolean
) RETURNS spinney_ledger.entries
LANGUAGE plpgsql SET search_path = pg_catalog, pg_temp AS $$
DECLARE
    fields jsonb;
    last spinney_ledger.head;
    known spinney_ledger.keys;
    result spinney_ledger.entries;
    taken jsonb;
    call_digest text := encode(sha256(convert_to(kind || ' ' || given::text, 'UTF8')), 'hex');
BEGIN
    -- What can be refused without a look at the ledger is refused before others have to wait.
    IF given IS NULL OR octet_length(given::text) > 2000000 OR json_typeof(given) <> 'object'
        OR entry_key IS NULL OR entry_key !~ '^[0-9a-f]{32}$'
        OR spinney_version IS NULL OR spinney_version !~ '^[0-9A-Za-z.+_-]{1,50}$'
        OR ((kind IN ('charge', 'brand')) AND given ->> 'key' IS DISTINCT FROM entry_key) THEN
        RAISE EXCEPTION USING ERRCODE = 'SP002', MESSAGE = 'an entry is not what this ledger takes';
    END IF;
    fields := given::jsonb;
    -- A charge is durable when its transaction ends, and nobody keeps others waiting by forgetting to end one.
    PERFORM set_config('synchronous_commit', 'on', true);
    PERFORM set_config('idle_in_transaction_session_timeout', '10s', true);
    SELECT * INTO STRICT last FROM spinney_ledger.head FOR UPDATE;
    SELECT * INTO known FROM spinney_ledger.keys k WHERE k.key = entry_key;
    IF FOUND THEN
        IF known.made_by <> session_user OR known.digest <> call_digest THEN
            RAISE EXCEPTION USING ERRCODE = 'SP002', MESSAGE = 'this key is on record already, for something else';
        END IF;
        SELECT * INTO STRICT result FROM spinney_ledger.entries e WHERE e.number = known.number;
        RETURN result;
    END IF;
    IF last.number >= 1000000 THEN
        RAISE EXCEPTION USING ERRCODE = 'SP001', MESSAGE = 'a ledger has at most 1,000,000 entries; begin another';
    END IF;

    result.number := last.number + 1;
    CASE
    WHEN kind = 'opened' AND last.number = 0 THEN
        last.ledger := spinney_ledger.hex_of(fields, 'ledger', 32, true);
        taken := jsonb_build_object('ledger', last.ledger, 'format_version', last.version, 'imported', NULL);
    WHEN kind = 'population' THEN
        taken := spinney_ledger.take_population(fields);
    WHEN kind IN ('limit', 'policy', 'closed', 'table') THEN
        taken := spinney_ledger.take_decision(kind, fields);
    WHEN kind = 'request' THEN
        taken := spinney_ledger.take_request(fields, result.number);
    WHEN kind IN ('approval', 'denial') THEN
        taken := spinney_ledger.take_answer(kind, fields);
    WHEN kind = 'charge' THEN
        taken := spinney_ledger.take_charge(fields, is_imported);
    WHEN kind = 'brand' THEN
        taken := spinney_ledger.take_brand(fields, is_imported);
    WHEN kind IN ('released', 'failed') THEN
        taken := spinney_ledger.take_end(kind, fields, is_imported);
    ELSE
        RAISE EXCEPTION USING ERRCODE = 'SP002', MESSAGE = 'there is no such kind of entry';
    END CASE;
    last.importing := CASE
        WHEN kind = 'population' AND taken ->> 'imported' IS NOT NULL THEN taken ->> 'population'
        WHEN is_imported AND kind IN ('charge', 'brand', 'released', 'failed') THEN last.importing END;

    result.content := (jsonb_build_object(
        'number', result.number, 'previous', last.hash, 'kind', kind, 'user', session_user, 'spinney', spinney_version,
        'time', to_char(clock_timestamp() AT TIME ZONE 'UTC', 'YYYY-MM-DD"T"HH24:MI:SS.US"Z"')
    ) || taken)::text;
    IF octet_length(result.content) > 2000000 THEN
        RAISE EXCEPTION USING ERRCODE = 'SP002', MESSAGE = 'an entry is too long';
    END IF;
    result.hash := encode(sha256(convert_to(result.content, 'UTF8')), 'hex');
    INSERT INTO spinney_ledger.entries VALUES (result.number, result.content, result.hash);
    INSERT INTO spinney_ledger.keys VALUES (entry_key, result.number, session_user, call_digest);
    UPDATE spinney_ledger.head
        SET number = result.number, hash = result.hash, ledger = last.ledger, importing = last.importing;
    RETURN result;
END
$$;

CREATE FUNCTION spinney_ledger.analyst_append(kind text, fields json, spinney_version text, entry_key text)
RETURNS spinney_ledger.entries
LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
DECLARE
    result spinney_ledger.entries;
    written spinney_ledger.writers;
BEGIN
    IF kind IS NULL OR kind NOT IN ('request', 'charge', 'brand', 'released', 'failed') THEN
        RAISE EXCEPTION USING ERRCODE = '42501', MESSAGE = 'an analyst may request and charge, and nothing else';
    END IF;
    result := spinney_ledger.append(kind, fields, spinney_version, entry_key, false);
    -- Everybody reads all entries, so long ones count for several.
    written := ROW(session_user, 1 + octet_length(result.content) / 4000, 0);
    IF kind IN ('request', 'brand') THEN
        written.n_free := written.n;
    END IF;
    INSERT INTO spinney_ledger.writers AS w VALUES (written.*)
        ON CONFLICT (made_by) DO UPDATE SET n = w.n + excluded.n, n_free = w.n_free + excluded.n_free
        RETURNING w.* INTO written;
    IF written.n_free > 5000 AND kind IN ('request', 'brand') THEN
        RAISE EXCEPTION USING ERRCODE = 'SP001',
            MESSAGE = 'one user writes at most 5,000 requests and brands into a ledger; begin another';
    END IF;
    -- What was begun can end.
    IF written.n > 100000 AND kind IN ('request', 'charge', 'brand') THEN
        RAISE EXCEPTION USING ERRCODE = 'SP001',
            MESSAGE = 'one user writes at most 100,000 of the 1,000,000 entries of a ledger; begin another';
    END IF;
    RETURN result;
END
$$;

CREATE FUNCTION spinney_ledger.keeper_append(kind text, fields json, spinney_version text, entry_key text)
RETURNS spinney_ledger.entries
LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
BEGIN
    IF kind IS NULL OR kind NOT IN (
        'population', 'limit', 'policy', 'closed', 'table', 'approval', 'denial',
        'charge', 'brand', 'released', 'failed'
    ) THEN
        RAISE EXCEPTION USING ERRCODE = '42501', MESSAGE = 'this is not a keeper''s to write';
    END IF;
    RETURN spinney_ledger.append(kind, fields, spinney_version, entry_key, true);
END
$$;

-- ---------------------------------------------------------------------------------------------------- who may do what

-- Roles belong to all databases of a server, so they carry the name of this one.
DO $$
DECLARE
    analyst text := 'spinney_analyst_' || current_database();
    keeper text := 'spinney_keeper_' || current_database();
    role text;
BEGIN
    IF octet_length(analyst) > 63 THEN
        RAISE EXCEPTION USING ERRCODE = 'SP002',
            MESSAGE = 'the name of the database is longer than 47 bytes, and roles are named after it';
    END IF;
    IF current_setting('server_encoding') <> 'UTF8' THEN
        RAISE EXCEPTION USING ERRCODE = 'SP002', MESSAGE = 'the encoding of the database is not UTF8';
    END IF;
    REVOKE ALL ON SCHEMA spinney_ledger FROM PUBLIC;
    REVOKE ALL ON ALL TABLES IN SCHEMA spinney_ledger FROM PUBLIC;
    REVOKE ALL ON ALL FUNCTIONS IN SCHEMA spinney_ledger FROM PUBLIC;
    FOREACH role IN ARRAY ARRAY[analyst, keeper] LOOP
        IF NOT EXISTS (SELECT FROM pg_catalog.pg_roles r WHERE r.rolname = role) THEN
            EXECUTE format('CREATE ROLE %I NOLOGIN', role);
        END IF;
        EXECUTE format('GRANT USAGE ON SCHEMA spinney_ledger TO %I', role);
        EXECUTE format(
            'GRANT SELECT ON spinney_ledger.entries, spinney_ledger.head, spinney_ledger.populations, '
            'spinney_ledger.tables, spinney_ledger.requests, spinney_ledger.fits TO %I', role
        );
    END LOOP;
    EXECUTE format('GRANT EXECUTE ON FUNCTION spinney_ledger.analyst_append TO %I', analyst);
    EXECUTE format('GRANT EXECUTE ON FUNCTION spinney_ledger.keeper_append TO %I', keeper);
END
$$;
