"""What a trial cost, of its row and of its readings alone."""

from trifecta.analysis.costs import Cost, usages, work


def trial_costs(trial, rows):
    requests, content = work(trial)
    return {process: Cost(usage, requests, content) for process, usage in usages(rows).items()}
