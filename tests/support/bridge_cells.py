"""The tests that show the cells of the tables of what each bridge transfers, for ``tests/test_bridge_cells.py``.

Each table is named by its page and its first heading cell. Each row is named by its first cell; its tests follow in the
order of the other columns: ``FILE::NAME`` without ``test_`` and ``.py``, or "" for an empty cell. One test stands for
all cells of a row.
"""

from __future__ import annotations

_THEIRS = "support/their_agents.py::TheirAgents."
_PLAYS = f"{_THEIRS}test_it_plays_an_episode_with_the_environments_tools_as_its_own"


def _in(file: str, *names: str) -> tuple[str, ...]:
    return tuple(f"{file}.py::test_{name}" if name else "" for name in names)


def _across(files: tuple[str, ...], rows: dict[str, tuple[str, ...]]) -> dict[str, tuple[str, ...]]:
    """Rows whose columns belong to one file each."""
    return {
        row: tuple(f"{file}.py::test_{name}" if name else "" for file, name in zip(files, names, strict=True))
        for row, names in rows.items()
    }


_DIRECT = "an_episode_of_ours_is_the_one_that_is_played_directly"
_PLAIN = "an_episode_is_the_one_that_is_played_directly"
_OURS_BACK = "an_episode_of_ours_comes_back_through_openenv_whole"
_EXPORTED = "an_exported_environment_plays_in_verifiers_as_it_does_directly"
_GAME = "an_episode_of_ours_is_a_game_of_textarena"
_MCP = "bridges/test_mcp"
_SERVED = "bridges/test_mcp_server"
_HARBOR = "rstar2_env/adapters/test_harbor"
_ATIF = "rstar2_env/adapters/test_atif"
_PUBLISHED = "bridges/test_nemo_gym_rollouts"
_ROLLOUTS = "rstar2_env/adapters/atif/test_nemo_gym"
_FOUR = ("bridges/test_openenv", "bridges/test_verifiers", "bridges/test_skyrl", "bridges/test_textarena")
_THREE = ("bridges/test_verl", "bridges/test_verl_interactions", "rstar2_env/adapters/test_trl")

CELLS: dict[tuple[str, str], dict[str, tuple[str, ...]]] = {
    ("bridge-transfers.md", "our environment in | OpenEnv 0.10"): _across(
        _FOUR,
        {
            "texts": (
                _OURS_BACK,
                "a_turn_reaches_the_environment_with_the_space_around_it",
                _DIRECT,
                "textarena_cuts_role_tags_out_of_what_is_shown_and_not_out_of_what_is_played",
            ),
            "reward": (_OURS_BACK, _EXPORTED, _DIRECT, _GAME),
            "reward components": (
                "an_episode_is_the_one_that_is_played_here",
                "injected_faults_and_the_components_of_a_reward_are_metrics_too",
                _DIRECT,
                _GAME,
            ),
            "statuses of calls": (
                _OURS_BACK,
                "statuses_are_metrics",
                "statuses_become_metrics_that_skyrl_averages",
                _GAME,
            ),
            "injected faults": (
                "a_served_environment_has_its_wrappers",
                "injected_faults_and_the_components_of_a_reward_are_metrics_too",
                "injected_faults_are_told_apart_and_are_no_errors_of_the_policy",
                _GAME,
            ),
            "`terminated`, `truncated`": (_OURS_BACK, _EXPORTED, _DIRECT, _GAME),
            "`unavailable`": (
                _OURS_BACK,
                "an_unavailable_episode_is_an_error_of_verifiers",
                "an_unavailable_episode_raises_rather_than_earn_nothing",
                _GAME,
            ),
            "seed, problem": (
                "the_state_names_the_episode_and_its_problem",
                "the_tasks_are_seeds_and_may_end",
                "the_rows_name_what_to_play_and_a_row_that_names_nothing_is_refused",
                _GAME,
            ),
            "system message": (_OURS_BACK, _EXPORTED, "the_page_on_bridges_shows_what_works", _GAME),
        },
    ),
    ("bridge-transfers.md", "our environment in | verl's tools (0.9)"): _across(
        _THREE,
        {
            "texts": (
                "the_calls_of_a_trajectory_are_the_turns_of_one_episode",
                _DIRECT,
                _PLAIN,
            ),
            "reward": (
                "the_reward_is_that_of_the_policys_own_last_turn",
                _DIRECT,
                "the_final_turn_is_handed_in_and_earns_its_reward",
            ),
            "statuses, injected faults": (
                "the_calls_of_a_trajectory_are_the_turns_of_one_episode",
                _DIRECT,
                "statuses_budgets_and_ends_are_the_environments_own",
            ),
            "calls that do not parse": ("what_verl_refuses_by_itself_has_no_status_here", _DIRECT, ""),
            "`terminated`, `truncated`": (
                "budgets_end_an_episode_and_nothing_runs_after",
                _DIRECT,
                "statuses_budgets_and_ends_are_the_environments_own",
            ),
            "budgets of the environment": (
                "budgets_end_an_episode_and_nothing_runs_after",
                _DIRECT,
                "statuses_budgets_and_ends_are_the_environments_own",
            ),
            "`unavailable`": (
                "an_unavailable_call_is_an_error_of_verls",
                "an_unavailable_episode_and_a_row_without_a_start_raise",
                _PLAIN,
            ),
            "seed, problem": (
                "the_rows_give_every_tool_what_to_reset_with",
                "the_rows_hold_the_opening_and_what_to_reset_with",
                "the_rollouts_of_a_row_play_the_same_problem_and_a_row_that_says_none_is_refused",
            ),
        },
    ),
    ("bridge-transfers.md", "an environment from | OpenEnv 0.10"): _across(
        _FOUR,
        {
            "texts": (
                "an_episode_of_theirs_is_the_one_that_their_client_plays",
                "a_taskset_of_theirs_is_scored_as_verifiers_scores_it",
                "an_episode_of_theirs_is_the_one_that_is_played_directly",
                "a_game_of_one_player_is_the_one_that_textarena_plays",
            ),
            "reward": (
                "an_episode_of_theirs_is_the_one_that_their_client_plays",
                "a_taskset_of_theirs_is_scored_as_verifiers_scores_it",
                "an_episode_of_theirs_is_the_one_that_is_played_directly",
                "a_game_of_two_players_is_the_one_that_textarena_plays",
            ),
            "statuses of calls": (_OURS_BACK, "", "", "a_move_that_cannot_be_played_is_told_apart"),
            "`terminated`, `truncated`": (
                "an_episode_of_theirs_is_the_one_that_their_client_plays",
                "a_user_of_theirs_answers_turn_by_turn_and_their_limits_hold",
                "an_episode_of_theirs_is_the_one_that_is_played_directly",
                "a_game_of_one_player_is_the_one_that_textarena_plays",
            ),
            "a failure of the framework": (
                "a_server_that_is_lost_in_an_episode_makes_it_unavailable",
                "a_user_of_theirs_answers_turn_by_turn_and_their_limits_hold",
                "an_exception_of_theirs_is_unavailable_and_says_what_it_was",
                "",
            ),
            "seed": (
                "an_episode_of_theirs_is_the_one_that_their_client_plays",
                "theirs_keeps_our_contract",
                "theirs_keeps_our_contract",
                "theirs_keeps_our_contract_with_its_global_random_state",
            ),
            "a turn that is not an action": (
                "a_turn_may_be_the_whole_action",
                "",
                "",
                "a_move_that_cannot_be_played_is_told_apart",
            ),
        },
    ),
    ("bridge-transfers.md", " | OpenAI Agents SDK"): {
        "reward, end, `terminated` and `truncated`": (_PLAYS,),
        "status of a call, injected faults": (f"{_THEIRS}test_an_injected_fault_is_no_error_of_the_agent",),
        "`unavailable`": (f"{_THEIRS}test_a_failure_of_the_sandbox_is_unavailable_and_no_reward_of_zero",),
        "a budget of the environment is used up": (f"{_THEIRS}test_a_budget_of_the_environment_unwinds_its_loop",),
        "several calls in one reply": (f"{_THEIRS}test_calls_made_at_once_become_turns_in_their_order",),
        **_across(
            ("bridges/test_openai_agents", "bridges/test_smolagents", "bridges/test_langgraph"),
            {
                "arguments that are not JSON": (
                    "arguments_that_are_no_json_are_a_malformed_call",
                    "",
                    "arguments_that_are_no_json_are_a_malformed_call",
                ),
                "arguments of a wrong type": (
                    "arguments_of_a_wrong_type_are_invalid",
                    "what_it_refuses_itself_is_no_turn",
                    "arguments_of_a_wrong_type_are_invalid",
                ),
                "a tool that does not exist": (
                    "a_call_of_a_tool_that_does_not_exist_is_no_turn",
                    "what_it_refuses_itself_is_no_turn",
                    "a_call_of_a_tool_that_does_not_exist_is_no_turn",
                ),
            },
        ),
        "the final text": (_PLAYS, "bridges/test_smolagents.py::test_a_bare_final_answer_is_marked", _PLAYS),
    },
    ("bridge-transfers.md", "from the server | here"): {
        "name, description and schema of a tool": _in(_MCP, "the_prompt_has_the_schemas_of_the_servers_tools"),
        "arguments": _in(_MCP, "every_result_has_one_of_our_statuses"),
        "text, embedded text": _in(_MCP, "every_result_has_one_of_our_statuses"),
        "structured content": _in(_MCP, "every_result_has_one_of_our_statuses"),
        "images, sound, bytes, links": _in(_MCP, "every_result_has_one_of_our_statuses"),
        "a result that is marked as an error": _in(_MCP, "every_result_has_one_of_our_statuses"),
        "a call that takes too long": _in(_MCP, "a_call_that_takes_too_long_is_stopped_and_its_program_starts_again"),
        "a local server that is started again and cannot repeat the calls of its episode": _in(
            f"{_MCP}_sessions", "a_call_of_the_episode_that_cannot_be_repeated_makes_the_server_unavailable"
        ),
        "a server that ends, cannot be reached or breaks the protocol": _in(
            _MCP, "a_lost_server_is_unavailable_and_the_next_episode_has_a_new_one"
        ),
        "a shared server, or a server over HTTP, that is silent for long and then answers no other request": _in(
            _MCP, "a_server_over_http_that_answers_nothing_more_is_unavailable"
        ),
        "a request for a person or a model (elicitation, sampling)": _in(
            _MCP, "a_question_to_a_person_or_a_model_is_refused"
        ),
        "seed": _in(_MCP, "an_episode_replays_with_its_seeds"),
        "injected faults, budgets of calls": _in(_MCP, "injected_faults_and_budgets_reach_these_tools"),
        "a copy of an environment": _in(_MCP, "a_copy_of_an_environment_repeats_the_calls_of_its_episode"),
        "prompts, resources, tasks, changes of the list of tools": _in(
            _MCP, "prompts_resources_tasks_and_changes_of_the_list_are_not_used"
        ),
    },
    ("bridge-transfers.md", "our tools | in MCP"): {
        "name, description, schema": _in(_SERVED, "a_call_has_the_description_the_seed_and_the_record_of_the_tool"),
        "text of a result": _in(_SERVED, "an_assistant_runs_python_and_cannot_leave_the_sandbox"),
        "status, error type, exit code, whether it was cut": _in(
            _SERVED, "a_call_has_the_description_the_seed_and_the_record_of_the_tool"
        ),
        "reward, `terminated`, `truncated`, `info` of a turn": _in(
            _SERVED, "an_assistant_plays_an_episode_to_its_reward"
        ),
        "seed": _in(_SERVED, "equal_seeds_give_equal_tasks_and_running_episodes_are_limited"),
        "`unavailable`": _in(_SERVED, "a_tool_that_is_unavailable_is_an_error_and_ends_an_episode_as_unavailable"),
    },
    ("bridge-harbor.md", "a task of Harbor | in `HarborEnv`"): {
        "instruction": _in(_HARBOR, "the_instruction_has_no_canary"),
        "image": _in(_HARBOR, "a_task_that_needs_more_is_refused_with_the_field"),
        "commands of the image": _in(_HARBOR, "commands_of_the_image_set_up_each_episode_in_their_order"),
        "packages that the image installs": _in(
            f"{_HARBOR}_packages", "the_packages_of_a_task_are_there_for_commands_and_tests"
        ),
        "`/app` and other folders at the root": _in(
            _HARBOR, "commands_share_files_the_folder_and_the_variables_of_the_image"
        ),
        "network": _in(_HARBOR, "a_task_that_needs_more_is_refused_with_the_field"),
        "several steps, services, GPUs, users, MCP servers, images for tests, variables of the machine": _in(
            _HARBOR, "a_field_that_the_sandbox_lacks_is_refused"
        ),
        "tests": _in(_HARBOR, "a_policy_cannot_write_its_own_reward"),
        "rewards": _in(_HARBOR, "each_reward_of_a_json_file_is_a_component"),
        "no reward, or not a number": _in(_HARBOR, "tests_without_a_reward_do_not_measure_the_policy"),
        "tests that exceed a limit": _in(_HARBOR, "tests_that_do_not_end_earn_nothing"),
    },
    ("bridge-harbor.md", "our environment | in a task of Harbor"): {
        "system and user message": _in("bridges/test_harbor", "harbor_reads_the_tasks_that_we_write"),
        "grader": _in(_HARBOR, "an_export_has_graders_and_reference_solutions"),
        "reference solution": _in(_HARBOR, "an_export_has_graders_and_reference_solutions"),
        "seed, problem": _in(_HARBOR, "an_export_has_graders_and_reference_solutions"),
        "tools, statuses of calls, injected faults, further turns": _in(_HARBOR, "an_export_of_a_game_is_refused"),
    },
    ("bridge-trajectories.md", "an episode | in the file"): {
        "messages": _in(
            _ATIF,
            "the_fields_of_the_format_hold_tokens_calls_and_results",
            "another_producers_calls_results_and_reasoning_become_text",
        ),
        "calls of tools": _in(
            _ATIF,
            "the_fields_of_the_format_hold_tokens_calls_and_results",
            "another_producers_calls_results_and_reasoning_become_text",
        ),
        "results of calls": _in(_ATIF, "a_result_is_split_by_call", "an_episode_comes_back_as_it_was_exported"),
        "token ids, log-probabilities": _in(
            _ATIF, "the_fields_of_the_format_hold_tokens_calls_and_results", "a_rewritten_history_has_no_row"
        ),
        "a turn that a branch shares with its parent": _in(
            _ATIF,
            "turns_that_a_branch_shares_with_its_parent_are_copied_context",
            "an_episode_comes_back_as_it_was_exported",
        ),
        "copied context, steps that no model wrote": _in(
            _ATIF, "", "copied_context_is_neither_in_the_mask_nor_trained"
        ),
        "status of a call, injected faults": _in(
            _ATIF,
            "an_episode_comes_back_as_it_was_exported",
            "the_statuses_of_another_producer_are_unknown_and_its_subagents_are_counted",
        ),
        "reward, components, end, answer, decision of the selector": _in(
            _ATIF, "the_reward_is_where_other_readers_look_for_it", "an_episode_comes_back_as_it_was_exported"
        ),
        "mask, advantages and ratios of tokens": _in(_ATIF, *["an_episode_comes_back_as_it_was_exported"] * 2),
        "images, audio": _in(_ATIF, "", "a_wrong_field_is_refused_by_its_name"),
        "trajectories of subagents": _in(
            _ATIF, "", "the_statuses_of_another_producer_are_unknown_and_its_subagents_are_counted"
        ),
    },
    ("bridge-trajectories.md", "a rollout of NeMo Gym | read"): {
        "`input`, `instructions`; messages, reasoning, function calls and their outputs": _in(
            _ROLLOUTS, "an_episode_has_the_prompt_the_calls_the_results_and_the_answer"
        ),
        "an `output` of transitions (Aviary)": _in(
            _ROLLOUTS, "an_output_of_transitions_is_the_conversation_of_the_last_one"
        ),
        "arguments that are not JSON": _in(_ROLLOUTS, "arguments_that_are_not_json_stay_as_they_were_written"),
        "`prompt_token_ids`, `generation_token_ids`, `generation_log_probs`": _in(
            _ROLLOUTS, "the_tokens_of_each_reply_are_kept"
        ),
        "`reward`, `expected_answer`": _in(_ROLLOUTS, "the_task_the_reward_and_the_expected_answer_are_kept"),
        "`incomplete_details` with a reason, `error`": _in(
            _ROLLOUTS, "the_end_of_the_response_is_the_end_of_the_episode"
        ),
        "`truncated`, `mask_sample`": _in(_ROLLOUTS, "the_end_that_the_environment_states_is_the_end_of_the_episode"),
        "tools, settings of the model, other fields of the row": _in(
            _PUBLISHED, "what_is_left_out_of_published_rollouts_is_named"
        ),
        "images, audio, files, other kinds of items": _in(
            _ROLLOUTS, "a_row_that_is_not_a_rollout_is_refused_with_the_field"
        ),
    },
}
