-- The events of charges and brands (`events.py`, `parts.py`): which there are, which fields each has, and of what type
-- every field is. What is none of them is not stored, so that everybody can read what is.

CREATE TABLE spinney_ledger.shapes (
    name text PRIMARY KEY,
    kind text NOT NULL CHECK (kind IN ('charge', 'brand', 'part')),
    fields text[] NOT NULL,
    stages text[] NOT NULL
);

INSERT INTO spinney_ledger.shapes VALUES
    ('DiscreteLaplaceCounts', 'charge', '{epsilon, sensitivity, note, stage, times, column}',
        '{rows, bounds, classes, one-way, spikes, places, workload, pairs, cliques, leaves, answer}'),
    ('LeafMoments', 'charge', '{epsilon, sensitivity, note, stage}', '{leaves, answer, utility}'),
    ('SplitDecisions', 'charge', '{epsilon, rule, rate, levels, note, stage, times, decay}', '{splits, trees, regions}'),
    ('DiscreteGaussianVector', 'charge', '{epsilon, delta, sensitivity_squared, variance, note}', '{}'),
    ('Selection', 'charge', '{epsilon, note, stage, times}', '{selection, prior}'),
    ('PartitionSelection', 'charge', '{epsilon, delta, note, stage, column}', '{values}'),
    ('ComposedRelease', 'charge', '{epsilon, delta, parts, note}', '{}'),
    ('NotPrivate', 'brand', '{note}', '{}'),
    ('UnsafeEntropy', 'brand', '{note}', '{}'),
    ('GaussianTables', 'part', '{variance, times, note, stage}',
        '{one-way, spikes, places, workload, pairs, cliques}'),
    ('TreeShapes', 'part', '{rate, decay, levels, times, note, stage}', '{trees, regions, row trees}'),
    ('Selections', 'part', '{epsilon, times, note, stage}', '{selection, prior, row selection}'),
    ('GaussianVector', 'part', '{mean_squared, note, stage}', '{analyses, products, alikeness, utility}'),
    ('WeightedTables', 'part', '{mean_squared, times, note, stage}', '{row one-way, row spikes, row tables}');

-- An exact number from low to high, as a text.
CREATE FUNCTION spinney_ledger.check_exact(value json, low text, high text, field text) RETURNS void
LANGUAGE plpgsql IMMUTABLE SET search_path = pg_catalog, pg_temp AS $$
DECLARE
    found spinney_ledger.fraction;
BEGIN
    IF json_typeof(value) <> 'string' THEN
        RAISE EXCEPTION USING ERRCODE = 'SP002', MESSAGE = field || ' of an event is not the text of an exact number';
    END IF;
    found := spinney_ledger.exact(value #>> '{}', field);
    IF (found).n <= 0 OR (low IS NOT NULL AND NOT spinney_ledger.is_at_most(spinney_ledger.exact(low, field), found))
        OR (high IS NOT NULL AND NOT spinney_ledger.is_at_most(found, spinney_ledger.exact(high, field))) THEN
        RAISE EXCEPTION USING ERRCODE = 'SP002', MESSAGE = field || ' of an event is too small or too large';
    END IF;
END
$$;

-- A whole number from low to high, written in plain digits.
CREATE FUNCTION spinney_ledger.check_whole(value json, low bigint, high bigint, is_needed boolean, field text)
RETURNS void
LANGUAGE plpgsql IMMUTABLE SET search_path = pg_catalog, pg_temp AS $$
BEGIN
    IF json_typeof(value) = 'null' AND NOT is_needed THEN
        RETURN;
    END IF;
    IF json_typeof(value) <> 'number' OR value::text !~ '^(0|[1-9][0-9]{0,18})$'
        OR (value::text)::numeric NOT BETWEEN low AND high THEN
        RAISE EXCEPTION USING ERRCODE = 'SP002',
            MESSAGE = field || ' of an event is not a whole number in ' || low || '..' || high;
    END IF;
END
$$;

CREATE FUNCTION spinney_ledger.check_words(value json, is_needed boolean, field text) RETURNS void
LANGUAGE plpgsql IMMUTABLE SET search_path = pg_catalog, pg_temp AS $$
BEGIN
    IF json_typeof(value) = 'null' AND NOT is_needed THEN
        RETURN;
    END IF;
    IF json_typeof(value) <> 'string' OR char_length(value #>> '{}') > 65536 THEN
        RAISE EXCEPTION USING ERRCODE = 'SP002',
            MESSAGE = field || ' of an event is not a text of at most 65536 characters';
    END IF;
END
$$;

-- An event, or a part of one, with exactly the fields of its kind, each of its type.
CREATE FUNCTION spinney_ledger.check_shape(thing json, wanted text) RETURNS void
LANGUAGE plpgsql SET search_path = pg_catalog, pg_temp AS $$
DECLARE
    is_part boolean := wanted = 'part';
    tag text := CASE WHEN wanted = 'part' THEN 'part' ELSE 'event' END;
    shape spinney_ledger.shapes;
    field text;
    value json;
BEGIN
    IF json_typeof(thing) IS DISTINCT FROM 'object' THEN
        RAISE EXCEPTION USING ERRCODE = 'SP002', MESSAGE = 'an event is not a table of fields';
    END IF;
    SELECT * INTO shape FROM spinney_ledger.shapes s WHERE s.name = thing ->> tag AND s.kind = wanted;
    IF NOT FOUND THEN
        RAISE EXCEPTION USING ERRCODE = 'SP002', MESSAGE = 'an event is not of a kind that belongs here';
    END IF;
    IF (SELECT array_agg(k ORDER BY k COLLATE "C") FROM json_object_keys(thing) k) IS DISTINCT FROM
        (SELECT array_agg(k ORDER BY k COLLATE "C") FROM unnest(shape.fields || tag) k) THEN
        RAISE EXCEPTION USING ERRCODE = 'SP002',
            MESSAGE = 'an event has other fields than ' || array_to_string(shape.fields, ', ');
    END IF;
    FOR field, value IN SELECT * FROM json_each(thing) LOOP
        CASE field
        WHEN 'event', 'part' THEN
            CONTINUE;
        WHEN 'note' THEN
            PERFORM spinney_ledger.check_words(value, true, field);
        WHEN 'column' THEN
            PERFORM spinney_ledger.check_words(value, false, field);
        WHEN 'stage' THEN
            IF json_typeof(value) <> 'null'
                AND (json_typeof(value) <> 'string' OR NOT (value #>> '{}') = ANY (shape.stages)) THEN
                RAISE EXCEPTION USING ERRCODE = 'SP002', MESSAGE = 'stage of an event is not one of its kind';
            END IF;
        WHEN 'rule' THEN
            IF json_typeof(value) <> 'string' OR (value #>> '{}') NOT IN ('privtree', 'paper') THEN
                RAISE EXCEPTION USING ERRCODE = 'SP002', MESSAGE = 'rule of an event is not privtree or paper';
            END IF;
        WHEN 'epsilon' THEN
            PERFORM spinney_ledger.check_exact(
                value, CASE WHEN is_part THEN '1/1073741824' END, CASE WHEN is_part THEN '32' ELSE '1048576' END, field
            );
        WHEN 'rate' THEN
            PERFORM spinney_ledger.check_exact(
                value, CASE WHEN is_part THEN '1/1073741824' END, CASE WHEN is_part THEN '32' END, field
            );
        WHEN 'variance' THEN
            PERFORM spinney_ledger.check_exact(
                value, CASE WHEN is_part THEN '1/1024' END, CASE WHEN is_part THEN '68719476736' END, field
            );
        WHEN 'mean_squared' THEN
            PERFORM spinney_ledger.check_exact(value, '1/68719476736', '1024', field);
        WHEN 'sensitivity_squared' THEN
            PERFORM spinney_ledger.check_exact(value, NULL, NULL, field);
        WHEN 'delta' THEN
            IF json_typeof(value) <> 'string' THEN
                RAISE EXCEPTION USING ERRCODE = 'SP002', MESSAGE = 'delta of an event is not a text';
            END IF;
            PERFORM spinney_ledger.exact_delta(value #>> '{}');
        WHEN 'sensitivity' THEN
            PERFORM spinney_ledger.check_whole(value, 1, 1099511627776, true, field);
        WHEN 'levels' THEN
            PERFORM spinney_ledger.check_whole(value, CASE WHEN is_part THEN 1 ELSE 0 END, 4096, true, field);
        WHEN 'times' THEN
            PERFORM spinney_ledger.check_whole(
                value, 1, CASE WHEN is_part THEN 65536 ELSE 1099511627776 END, is_part, field
            );
        WHEN 'decay' THEN
            PERFORM spinney_ledger.check_whole(value, 1, 1152921504606846976, is_part, field);
        WHEN 'parts' THEN
            PERFORM spinney_ledger.check_list(value, 'part');
        END CASE;
    END LOOP;
END
$$;

CREATE FUNCTION spinney_ledger.check_list(listed json, wanted text) RETURNS void
LANGUAGE plpgsql SET search_path = pg_catalog, pg_temp AS $$
BEGIN
    IF json_typeof(listed) IS DISTINCT FROM 'array' OR json_array_length(listed) NOT BETWEEN 1 AND 256 THEN
        RAISE EXCEPTION USING ERRCODE = 'SP002', MESSAGE = 'a list of events or parts does not have 1 to 256 of them';
    END IF;
    PERFORM spinney_ledger.check_shape(each, wanted) FROM json_array_elements(listed) each;
END
$$;

-- The events of an entry, all of one kind, as they are written down: checked first, so that nothing in them grows.
CREATE FUNCTION spinney_ledger.events_of(fields jsonb, wanted text) RETURNS text
LANGUAGE plpgsql SET search_path = pg_catalog, pg_temp AS $$
DECLARE
    listed json := spinney_ledger.text_of(fields, 'events', 1000000, true)::json;
    normal text;
BEGIN
    PERFORM spinney_ledger.check_list(listed, wanted);
    normal := listed::jsonb::text;
    IF octet_length(normal) > 1000000 THEN
        RAISE EXCEPTION USING ERRCODE = 'SP002', MESSAGE = 'events is longer than 1000000 bytes';
    END IF;
    RETURN normal;
END
$$;

-- What composed charges may hold, so that everybody can work out what their parts cost (`bounds.py`).
CREATE FUNCTION spinney_ledger.check_composed(events jsonb) RETURNS void
LANGUAGE plpgsql SET search_path = pg_catalog, pg_temp AS $$
DECLARE
    event jsonb;
    n_parts bigint := 0;
    n_levels bigint := 0;
BEGIN
    FOR event IN SELECT * FROM jsonb_array_elements(events) e WHERE e ->> 'event' = 'ComposedRelease' LOOP
        IF NOT spinney_ledger.is_at_most(
            ROW(1, 10000000000)::spinney_ledger.fraction, spinney_ledger.exact(event ->> 'delta', 'delta')
        ) THEN
            RAISE EXCEPTION USING ERRCODE = 'SP002', MESSAGE = 'delta of a composed charge is below 1e-10';
        END IF;
        n_parts := n_parts + jsonb_array_length(event -> 'parts');
        n_levels := n_levels + (
            SELECT coalesce(sum((p ->> 'levels')::bigint), 0) FROM jsonb_array_elements(event -> 'parts') p
        );
    END LOOP;
    IF n_parts > 64 OR n_levels > 1024 THEN
        RAISE EXCEPTION USING ERRCODE = 'SP002',
            MESSAGE = 'a charge is composed of more than 64 parts, or its trees have more than 1,024 levels together';
    END IF;
END
$$;

-- What the events of a charge cost together.
CREATE FUNCTION spinney_ledger.cost_of(
    events jsonb, OUT epsilon spinney_ledger.fraction, OUT delta spinney_ledger.fraction
)
LANGUAGE plpgsql SET search_path = pg_catalog, pg_temp AS $$
DECLARE
    event jsonb;
BEGIN
    epsilon := ROW(0, 1);
    delta := ROW(0, 1);
    FOR event IN SELECT * FROM jsonb_array_elements(events) LOOP
        epsilon := spinney_ledger.plus(epsilon, spinney_ledger.exact(event ->> 'epsilon', 'epsilon'));
        IF event ? 'delta' THEN
            delta := spinney_ledger.plus(delta, spinney_ledger.exact(event ->> 'delta', 'delta'));
        END IF;
        PERFORM spinney_ledger.check_digits(epsilon, 780);
        PERFORM spinney_ledger.check_digits(delta, 780);
    END LOOP;
END
$$;
