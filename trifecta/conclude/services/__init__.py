"""Services that call each other: hops, success, costs, places, scaling, mixed protocols."""
