"""`python -m dynamo_sim` is the same as `dynamo-sim`."""

import sys

from dynamo_sim.cli import main

sys.exit(main())
