-- How times leave the database. PostgreSQL inlines them, so they cost no more than what they stand for.
CREATE FUNCTION unix_seconds(at timestamptz) RETURNS bigint LANGUAGE sql STABLE
  RETURN floor(extract(epoch FROM at))::bigint;
CREATE FUNCTION unix_ms(at timestamptz) RETURNS bigint LANGUAGE sql STABLE
  RETURN floor(extract(epoch FROM at) * 1000)::bigint;
