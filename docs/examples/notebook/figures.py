# %% [markdown]
# # A campaign's figures in polars
# A notebook as a script: Jupyter (with jupytext), VS Code and Spyder open it in cells; `python figures.py` runs it.
# It reads what these two commands wrote:
#
#     tare export night.tare --table results --format parquet -o results.parquet
#     tare export night.tare --table samples --format parquet -o samples.parquet

# %%
import polars as pl

results = pl.read_parquet("results.parquet")
samples = pl.read_parquet("samples.parquet")
facts = pl.read_parquet_metadata("results.parquet")
print(facts["tare.schema"], "of campaign", facts["tare.campaign"], "by tare", facts["tare.version"])

# %% [markdown]
# The report's figures: a row a workload, metric and platform. Which are surely different?

# %%
headlines = results.filter(pl.col("headline") & pl.col("op_percent").is_not_null())
print(
    headlines.filter(pl.col("verdict").is_in(["slower", "faster"]))
    .select("workload", "platform", "op_percent", "op_low_percent", "op_high_percent", "verdict")
    .sort("op_percent", descending=True)
)

# %% [markdown]
# The same from the samples. A block is the unit of inference: a platform's median in a block over the baseline's in
# the same block (the mean of its arms' logarithms), and the mean of that over blocks. tare itself pairs rounds too.

# %%
baseline = results["baseline"][0]
key = ["workload", "metric", "block"]
blocks = (
    samples.filter((pl.col("status") == "ok") & (pl.col("value") > 0))
    .group_by(*key, "platform", "replica", "direction")
    .agg(pl.col("value").median().log().alias("log"))
    .group_by(*key, "platform", "direction")
    .agg(pl.col("log").mean())
)
against = blocks.filter(pl.col("platform") == baseline).select(*key, pl.col("log").alias("baseline"))
own = (
    blocks.filter(pl.col("platform") != baseline)
    .join(against, on=key)
    .group_by("workload", "metric", "platform")
    .agg((pl.col("log") - pl.col("baseline")).mean().exp().alias("own_ratio"))
)
both = headlines.join(own, on=["workload", "metric", "platform"]).with_columns(
    (pl.col("own_ratio") / pl.col("ratio") - 1).abs().alias("differs")
)
print(both.select("workload", "platform", "ratio", "own_ratio", "differs").sort("differs", descending=True))

# %% [markdown]
# How far apart the two ways are, at most:

# %%
print(f"of {both.height} ratios the farthest is {100 * both['differs'].max():.1f} % apart")
