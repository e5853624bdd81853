"""Client CPU per request, requests per second and bulk transfer of ``load`` against wrk, h2load and oha, in turns."""
