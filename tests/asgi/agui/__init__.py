"""AG-UI, served: front ends run our agents and watch their runs."""
