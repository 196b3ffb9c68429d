# Sourced by cases. A torch that stands in for the real one, as far as a recording needs it.
export PYTHONPATH=tests/standin/python PYTHONDONTWRITEBYTECODE=1
