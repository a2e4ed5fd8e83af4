"""The control models, trained once for all tests of the audit."""

import pytest

from regard.audit.planted import planted_inputs, train_planted


@pytest.fixture(scope="session")
def honest_model():
    return train_planted().case


@pytest.fixture(scope="session")
def deceived_model():
    return train_planted(penalty=1.0).case


@pytest.fixture(scope="session")
def planted():
    return planted_inputs(60, seed=5)
