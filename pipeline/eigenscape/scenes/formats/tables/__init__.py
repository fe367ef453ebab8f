"""Files of rows: CSV, Parquet, sparse matrices."""
