"""The SQL behind what the report says of requests made one after the other."""

from __future__ import annotations

from trifecta.conclude.query import Query

# The mode is the fullest of bins as wide as a twentieth of the median; of equally full ones the first.
ROUND_TRIPS = Query(
    "round_trips",
    """
WITH one AS (
  SELECT t.cell, t.arm, s.latency_ns,
         median(s.latency_ns) OVER (PARTITION BY t.cell, t.arm) / 20 AS width_ns
  FROM samples AS s JOIN trials AS t USING (trial)
  WHERE t.valid AND NOT t.is_aa AND NOT s.warmup AND s.success{and_cell}),
bin AS (
  SELECT cell, arm, floor(latency_ns / width_ns) AS place, any_value(width_ns) AS width_ns, count(*) AS times
  FROM one GROUP BY cell, arm, place),
fullest AS (
  SELECT cell, arm, arg_max(place, times - place / 1e9) * any_value(width_ns) AS mode_low_ns,
         any_value(width_ns) AS width_ns
  FROM bin GROUP BY cell, arm)
SELECT o.cell, o.arm, count(*) AS requests, min(o.latency_ns) AS smallest_ns, any_value(f.mode_low_ns) AS mode_low_ns,
       any_value(f.mode_low_ns + f.width_ns) AS mode_high_ns, median(o.latency_ns) AS median_ns,
       avg(o.latency_ns) AS mean_ns, max(o.latency_ns) AS largest_ns
FROM one AS o JOIN fullest AS f USING (cell, arm)
GROUP BY o.cell, o.arm
ORDER BY o.cell, o.arm
""",
    ("cell", "arm"),
)

# T_i = i / (response_i - request_1). The first values are those of single requests, so the range leaves out the first
# hundredth, and ten requests at least.
PROGRESSIONS = Query(
    "progressions",
    """
WITH one AS (
  SELECT t.cell, t.arm, s.trial, row_number() OVER (PARTITION BY s.trial ORDER BY s.done_ns) AS place,
         count(*) OVER (PARTITION BY s.trial) AS requests,
         s.done_ns - min(coalesce(s.request_sent_ns, s.started_ns)) OVER (PARTITION BY s.trial) AS since_ns
  FROM samples AS s JOIN trials AS t USING (trial)
  WHERE t.valid AND NOT t.is_aa AND NOT s.warmup AND s.success{and_cell}),
rate AS (
  SELECT *, place * 1e9 / since_ns AS rate,
         last_value(place * 1e9 / since_ns) OVER (PARTITION BY trial ORDER BY place
           ROWS BETWEEN UNBOUNDED PRECEDING AND UNBOUNDED FOLLOWING) AS last
  FROM one WHERE since_ns > 0),
progression AS (
  SELECT cell, arm, trial, any_value(requests) AS requests, any_value(last) AS last,
         min(rate) FILTER (WHERE place >= greatest(10, 0.01 * requests)) AS smallest,
         max(rate) FILTER (WHERE place >= greatest(10, 0.01 * requests)) AS largest,
         avg(rate) AS mean, 1 + coalesce(max(place) FILTER (WHERE abs(rate / last - 1) > 0.05), 0) AS settled
  FROM rate GROUP BY cell, arm, trial)
SELECT cell, arm, count(*) AS trials, median(requests) AS requests, min(smallest) AS smallest, median(mean) AS mean,
       max(largest) AS largest, median(last) AS last, median(settled) AS settled
FROM progression
GROUP BY cell, arm
ORDER BY cell, arm
""",
    ("cell", "arm"),
)

PROGRESS = Query(
    "progress",
    """
SELECT t.cell, t.arm, t.place, t.value, t.low, t.high, t.smallest, t.largest, t.trials
FROM progress AS t
WHERE true{and_cell}
ORDER BY t.cell, t.arm, t.place
""",
    ("cell", "arm", "place"),
)

TESTS = Query(
    "trip_tests",
    """
SELECT t.cell, t.arm, t.reference, t.hypothesis, t.metric, t.ratio, t.ratio_low, t.ratio_high, t.difference_ns,
       t.difference_low_ns, t.difference_high_ns, t.p_blocks, t.blocks, t.faster, t.distance, t.p_samples, t.samples,
       t.reference_samples
FROM trip_tests AS t
WHERE true{and_cell}
ORDER BY t.cell, t.arm, t.reference
""",
    ("cell", "arm", "reference"),
)

QUERIES = (ROUND_TRIPS, PROGRESSIONS, PROGRESS, TESTS)
"""All of them."""
