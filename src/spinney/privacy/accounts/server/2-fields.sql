-- Exact numbers, and the fields of an entry, each read as what it has to be (`fields.py`).

CREATE FUNCTION spinney_ledger.reduced(n numeric, d numeric) RETURNS spinney_ledger.fraction
LANGUAGE sql IMMUTABLE STRICT SET search_path = pg_catalog, pg_temp AS $$
    SELECT ROW(div(n, gcd(n, d)), div(d, gcd(n, d)))::spinney_ledger.fraction
$$;

CREATE FUNCTION spinney_ledger.plus(a spinney_ledger.fraction, b spinney_ledger.fraction)
RETURNS spinney_ledger.fraction
LANGUAGE sql IMMUTABLE STRICT SET search_path = pg_catalog, pg_temp AS $$
    SELECT spinney_ledger.reduced((a).n * (b).d + (b).n * (a).d, (a).d * (b).d)
$$;

CREATE FUNCTION spinney_ledger.minus(a spinney_ledger.fraction, b spinney_ledger.fraction)
RETURNS spinney_ledger.fraction
LANGUAGE sql IMMUTABLE STRICT SET search_path = pg_catalog, pg_temp AS $$
    SELECT spinney_ledger.reduced((a).n * (b).d - (b).n * (a).d, (a).d * (b).d)
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

-- ------------------------------------------------------------------------------------------------------------- fields

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

-- What a cost counts as in the sum of a population: itself where its denominator divides the one below, and otherwise
-- the next multiple above. So no charge makes the sum of all charges longer than this denominator (`fields.py`).
CREATE FUNCTION spinney_ledger.counted(cost spinney_ledger.fraction) RETURNS spinney_ledger.fraction
LANGUAGE plpgsql IMMUTABLE STRICT SET search_path = pg_catalog, pg_temp AS $$
DECLARE
    -- 2^64 * 10^40 * lcm(1, ..., 30)
    grain numeric := 18446744073709551616 * 10000000000000000000000000000000000000000 * 2329089562800;
BEGIN
    IF mod(grain, (cost).d) = 0 THEN
        RETURN cost;
    END IF;
    RETURN spinney_ledger.reduced(div((cost).n * grain + (cost).d - 1, (cost).d), grain);
END
$$;

CREATE FUNCTION spinney_ledger.check_digits(amount spinney_ledger.fraction, most integer) RETURNS void
LANGUAGE plpgsql IMMUTABLE SET search_path = pg_catalog, pg_temp AS $$
BEGIN
    IF greatest(length((amount).n::text), length((amount).d::text)) > most THEN
        RAISE EXCEPTION USING ERRCODE = 'SP001', MESSAGE = 'the sum of these charges has too many digits';
    END IF;
END
$$;
