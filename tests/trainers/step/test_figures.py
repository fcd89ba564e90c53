"""The step's figures: shares with their counts, over all processes."""

from __future__ import annotations

from small_run import MIXED, SAME, by_group, collector

from rstar2_env.diagnosis.metric_table import metric_of
from rstar2_env.testing.training.processes import in_processes


def test_shares_that_were_looked_for_are_there_with_their_counts():
    batch = collector(by_group([MIXED, [1.0, "unavailable", 0.0, 0.0]]), problems_per_step=2).collect(0)
    figures = batch.figures
    assert figures["rollout/pass_rate"] == (3.0, 7.0)
    assert figures["rollout/unavailable"] == (1.0, 8.0)
    assert figures["rollout/end/tokens"] == (0.0, 8.0)
    assert figures["rollout/end/answered"] == (7.0, 8.0)
    assert figures["rollout/status/timeout"] == (0.0, 0.0)
    assert figures["rollout/tool_error_share"] == (0.0, 0.0)
    assert figures["rollout/episodes"] == (7.0, 1.0)
    assert figures["kept/episodes"] == (7.0, 1.0)
    assert figures["dropped/unavailable"] == (1.0, 8.0)
    assert set(batch.seconds) == {"rollout", "reward", "select", "advantage"}


def test_a_word_that_only_another_process_saw_has_its_count_here():
    def work(ranks):
        return collector(by_group([MIXED, SAME]), ranks=ranks, problems_per_step=2).collect(0).figures

    first, second = in_processes(2, work)
    assert first["dropped/equal"] == (0.0, 4.0)
    assert second["dropped/equal"] == (4.0, 4.0)


def test_every_figure_and_phase_of_a_step_is_in_the_table_of_metrics():
    batch = collector(by_group([MIXED, SAME]), problems_per_step=2).collect(0)
    names = [*batch.figures, *(f"seconds/{phase}" for phase in batch.seconds)]
    assert len(names) > 40
    assert [name for name in names if metric_of(name) is None] == []
