"""Why a verdict is what it is: the chain of evidence."""
