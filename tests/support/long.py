"""How deep tests look: as deep as minutes allow in `make test`, and deeper in `make test-long`.

Tests marked `long` are run by `make test-long` alone; others look at fewer cases in `make test`, by `cases` where they
count them themselves, and by `KEPT` where each case is a test. What is in `KEPT` took the most processor time of all.
"""

from __future__ import annotations

import os
from collections.abc import Sequence

IS_LONG = os.environ.get("SPINNEY_LONG_TESTS") == "1"


def cases(short: int, long: int) -> int:
    """How many cases a test looks at: `short` of them in `make test`, `long` in `make test-long`."""
    return long if IS_LONG else short


def spread(names: Sequence[str], n_kept: int) -> set[str]:
    """So many of the names, spread by the golden ratio, so that they differ in every parameter that they have."""
    order = sorted(range(len(names)), key=lambda place: place * 0.6180339887498949 % 1)
    return {names[place] for place in order[:n_kept]}


# Rooms beside the product, by the beginnings of their files: the paper, rivals, benchmarks, draws that are judged by
# their distribution (laws that are computed are in `exact`), ledgers on a server. `make test` runs one of so many of
# their tests, spread over all, so that a name that has moved is noticed.
BESIDE = (
    "conformance/test_rivals.py",
    "statistical/",
    "unit/benchmarks/",
    "unit/paper/",
    "unit/privacy/accounts/test_postgres",
)
ONE_OF = 8


def is_beside(file: str, name: str) -> bool:
    """Whether `make test` runs one of so many of these tests; what catches a broken mechanism always runs."""
    return file.startswith(BESIDE) and "sabotage" not in name


# Of tests with many cases, or long ones, by file: how many cases `make test` runs; all others are long.
KEPT: dict[str, dict[str, int]] = {
    "browser/test_studio.py": {
        "test_a_job_that_is_cancelled_says_that_it_was_charged": 0,
        "test_two_tabs_and_a_server_that_is_killed_charge_once": 0,
    },
    "conformance/test_cells_agree.py": {
        "test_every_value_has_the_same_cell": 5,
        "test_rows_have_the_same_states": 2,
    },
    "conformance/test_check_agrees.py": {
        "test_every_kind_of_table_has_the_same_findings": 25,
    },
    "conformance/test_codes_agree.py": {
        "test_a_private_list_is_the_same_from_every_engine": 1,
    },
    "conformance/test_forests_agree.py": {
        "test_a_disk_that_fills_up_while_levels_are_written_is_no_error": 1,
        "test_every_engine_gives_the_release_of_the_table_in_memory": 1,
        "test_every_kind_of_forest_is_that_of_the_table_in_memory": 1,
    },
    "conformance/test_frames_in.py": {
        "test_each_column": 8,
        "test_the_whole_table": 23,
    },
    "conformance/test_frames_out.py": {
        "test_a_forest_takes_and_gives_every_kind": 4,
        "test_every_kind_gives_the_same_rows": 8,
        "test_no_rows_have_the_same_types": 22,
        "test_sampled_rows": 17,
        "test_types_do_not_depend_on_the_rows_drawn": 18,
        "test_weighted_points": 19,
        "test_zoned_moments_come_back_in_their_zone": 22,
    },
    "conformance/test_people_agree.py": {
        "test_all_kinds_of_tables_give_the_same_persons": 36,
    },
    "conformance/test_pieces_agree.py": {
        "test_columns_are_counted_in_one_pass": 1,
        "test_counts_of_all_axes_together_agree": 1,
        "test_every_value_has_the_same_cell": 1,
    },
    "conformance/test_places_agree.py": {
        "test_releases_are_equal_by_every_engine": 3,
        "test_states_of_places_are_found_by_comparisons": 1,
    },
    "conformance/test_query_sources.py": {
        "test_every_question_is_answered_as_in_memory": 1,
        "test_the_release_is_that_of_the_table_in_memory": 1,
    },
    "conformance/test_rivals.py": {
        "test_every_kind_of_frame_is_read_alike_and_comes_back": 6,
    },
    "conformance/test_rows_alone.py": {
        "test_csv_rows_are_read_one_by_one": 2,
        "test_lines_are_read_one_by_one": 2,
        "test_objects_are_read_one_by_one": 2,
        "test_strings_in_memory_are_read_one_by_one": 6,
    },
    "conformance/test_ruled_columns_agree.py": {
        "test_every_engine_gives_the_release_of_the_table_in_memory": 2,
        "test_every_kind_of_forest_is_that_of_the_table_in_memory": 1,
    },
    "conformance/test_spark.py": {
        "test_the_release_is_that_of_the_table_in_memory": 1,
    },
    "docs/test_notebooks.py": {
        "test_notebooks_run_and_agree_with_their_sources": 1,
    },
    "exact/test_forest_laws.py": {
        "test_shapes_cost_no_more_than_a_pure_plan_charges": 5,
    },
    "exact/test_person_laws.py": {
        "test_a_weighted_table_tells_no_more_than_its_part": 11,
    },
    "exact/test_place_laws.py": {
        "test_shapes_cost_no_more_than_was_charged": 4,
        "test_shapes_follow_the_law_of_their_decisions": 7,
    },
    "exact/test_release_laws.py": {
        "test_privtree_reaches_its_certified_worst_case": 27,
        "test_trees_stay_within_epsilon_on_all_small_tables": 25,
    },
    "unit/auditing/test_games.py": {
        "test_whole_fits_are_told_apart_by_all_that_they_count": 1,
    },
    "unit/cli/test_ask.py": {
        "test_an_answer_that_cannot_be_written_is_in_the_error": 1,
    },
    "unit/forest/test_calibrated_answers.py": {
        "test_intervals_of_what_was_counted_hold_about_as_often_as_they_say": 0,
        "test_intervals_that_leave_a_source_out_hold_less_often": 1,
        "test_the_quantile_of_a_column_in_steps_is_a_step": 1,
    },
    "unit/forest/test_certified_answers.py": {
        "test_counts_of_whole_leaves_hold_as_often_as_they_say_and_no_narrower_ones_do": 1,
        "test_rows_at_the_upper_bound_are_not_below_it": 1,
    },
    "unit/forest/test_codes.py": {
        "test_other_promises": 2,
    },
    "unit/forest/test_computed_columns.py": {
        "test_every_row_adds_up": 1,
    },
    "unit/forest/test_design.py": {
        "test_a_fit_takes_exactly_what_its_plan_paid_for": 4,
        "test_less_is_measured_as_rows_and_budget_shrink": 1,
        "test_shares_of_every_design_add_up": 1,
    },
    "unit/forest/test_enforced_rules.py": {
        "test_rows_obey_at_most": 16,
    },
    "unit/forest/test_explain.py": {
        "test_shares_are_those_of_the_plan": 7,
    },
    "unit/forest/test_high_order.py": {
        "test_columns_that_only_together_decide_another_are_found": 1,
    },
    "unit/forest/test_implications.py": {
        "test_no_row_breaks_an_implication": 2,
    },
    "unit/forest/test_measured.py": {
        "test_a_file_gives_back_what_was_kept": 6,
        "test_a_release_holds_every_table_as_it_left_the_mechanisms": 2,
        "test_what_was_measured_gives_the_model_again": 4,
    },
    "unit/forest/test_place_borders.py": {
        "test_no_condition_brings_points_outside": 1,
        "test_noise_is_not_drawn_in_strips": 1,
    },
    "unit/forest/test_place_files.py": {
        "test_forged_places_are_refused": 13,
    },
    "unit/forest/test_places.py": {
        "test_every_kind_of_forest_has_places": 2,
    },
    "unit/forest/test_plausible_analyses.py": {
        "test_honest_files_are_read_and_verified": 2,
    },
    "unit/forest/test_plausible_files.py": {
        "test_honest_files_load": 2,
    },
    "unit/forest/test_prior.py": {
        "test_a_biased_prior_does_not_hurt": 2,
        "test_a_release_and_a_file_are_priors": 0,
        "test_every_structure_takes_a_prior": 2,
    },
    "unit/forest/test_prior_columns.py": {
        "test_piles_that_a_prior_has_are_kept_whatever_the_noise": 1,
    },
    "unit/forest/test_products.py": {
        "test_every_pair_is_counted_or_summed": 1,
        "test_no_vector_where_it_would_be_no_use": 3,
        "test_rules_places_and_computed_columns_hold": 4,
    },
    "unit/forest/test_redrawn.py": {
        "test_draws_obey_places_and_rules": 1,
    },
    "unit/forest/test_regressor_weights.py": {
        "test_intervals_hold_also_where_noise_hides_a_predictor": 1,
    },
    "unit/forest/test_replay.py": {
        "test_every_stage_of_a_forest_is_replayed": 1,
        "test_questions_move_by_what_was_paid_for": 2,
    },
    "unit/forest/test_rounds.py": {
        "test_what_is_open_follows_from_what_was_measured": 4,
    },
    "unit/forest/test_rules_everywhere.py": {
        "test_rows_meet_conditions_and_rules": 52,
    },
    "unit/forest/test_synthesizer.py": {
        "test_learns_what_goes_together": 2,
        "test_one_row": 3,
    },
    "unit/forest/test_unmeasured.py": {
        "test_tables_that_were_not_counted_are_not_in_the_model": 2,
        "test_what_fits_save_is_believed": 2,
    },
    "unit/forest/test_workload.py": {
        "test_a_stated_table_is_nearer_than_one_that_is_not": 1,
    },
    "unit/paper/test_sup.py": {
        "test_large_sets": 1,
    },
    "unit/release/test_error_bars.py": {
        "test_every_kind_and_every_old_file_says_what_it_can": 8,
    },
    "unit/release/test_storage_hostile.py": {
        "test_bytes_changed_at_random": 4,
    },
    "unit/synthesizers/test_buying.py": {
        "test_intervals_hold_as_often_as_they_say_and_no_oftener": 2,
    },
}
