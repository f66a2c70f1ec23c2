"""Lets the tests of this folder import `fake_campaign`, which lies one folder up."""

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent.parent))
