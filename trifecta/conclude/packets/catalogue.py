"""The SQL behind what the report shows of captures: views ``packets``, ``frames``, ``messages``, ``connections``."""

from __future__ import annotations

from dataclasses import replace

from trifecta.conclude.packets.metrics import CAPTURED
from trifecta.conclude.query import Query
from trifecta.conclude.visits import catalogue as of_visits

# A real trial, because what a packet did belongs to it: of the captured trials of an arm the one with the median
# duration; of its wires the one with the most packets.
CHOSEN = Query(
    "chosen_captures",
    """
WITH {captured},
trial AS (
  SELECT o.cell, o.arm, o.trial, max(o.end_ns) - min(o.start_ns) AS duration_ns,
         arg_max(o.capture, o.packets ORDER BY o.capture) AS capture
  FROM one AS o WHERE NOT o.is_aa GROUP BY o.cell, o.arm, o.trial),
placed AS (
  SELECT *, row_number() OVER (PARTITION BY cell, arm ORDER BY duration_ns, trial) AS place,
         count(*) OVER (PARTITION BY cell, arm) AS trials
  FROM trial)
SELECT cell, arm, trial, capture, duration_ns, trials
FROM placed WHERE place = ceil(trials * 0.5)
ORDER BY cell, arm
""".replace("{captured}", CAPTURED.strip()),
    ("cell", "arm"),
)

# Arms of which no capture is shown, and the checks that their trials failed; none where a capture broke off.
NOT_SHOWN = Query(
    "captures_not_shown",
    """
WITH {captured}
SELECT t.cell, t.arm, count(DISTINCT t.trial) AS trials,
       count(DISTINCT t.trial) FILTER (WHERE c.check IS NOT NULL) AS failing,
       list_sort(list(DISTINCT c.check) FILTER (WHERE c.check IS NOT NULL)) AS failed
FROM trials AS t
LEFT JOIN checks AS c ON c.scope = t.trial AND c.status = 'fail' AND c.check <> 'capture'
WHERE NOT t.is_aa AND (t.cell, t.arm) NOT IN (SELECT (o.cell, o.arm) FROM one AS o WHERE NOT o.is_aa){and_cell}
GROUP BY t.cell, t.arm
ORDER BY t.cell, t.arm
""".replace("{captured}", CAPTURED.strip()),
    ("cell", "arm"),
)

METRICS = replace(
    of_visits.METRICS, name="packet_metrics", sql=of_visits.METRICS.sql.replace("visit_metrics", "packet_metrics")
)
METRIC_RATIOS = replace(
    of_visits.METRIC_RATIOS,
    name="packet_metric_ratios",
    sql=of_visits.METRIC_RATIOS.sql.replace("visit_metrics", "packet_metrics"),
)
PUBLISHED = of_visits.PUBLISHED

# The parts that a figure stacks, of the chosen trials.
PARTS = Query(
    "packet_parts",
    """
SELECT t.cell, t.arm, t.kind, t.part, t.label, t.unit, t.place, t.value, t.share
FROM packet_parts AS t
WHERE true{and_cell}
ORDER BY t.cell, t.kind, t.arm, t.place
""",
    ("cell", "arm", "kind", "part"),
)

# The parts of a request's time, over all blocks.
TIMES = Query(
    "packet_times",
    """
SELECT t.cell, t.arm, t.part, t.label, t.unit, t.place, t.value, t.share, t.difference, t.difference_low,
       t.difference_high, t.blocks
FROM packet_times AS t
WHERE true{and_cell}
ORDER BY t.cell, t.arm, t.place
""",
    ("cell", "arm", "part"),
)

QUERIES = (CHOSEN, NOT_SHOWN, METRICS, METRIC_RATIOS, PUBLISHED, PARTS, TIMES)
"""All of them."""
