"""Schedulers judged without a model: a learner of a few parameters, or logged outcomes, in place of the policy."""
