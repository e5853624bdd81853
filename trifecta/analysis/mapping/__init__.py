"""Over a plane of two factors, who is faster where: a surface through the blocks, and where to measure next."""
