#pragma once
// Jobs of BigQuery that move tables to and from Cloud Storage, as the bodies of its REST interface (v2, jobs.insert) and
// as the `bq` commands that insert the same. Nothing is sent from here.
//
//   extract: a table to files, after a query that fills it, if there is one
//   load:    files to a table
//
// Source: https://cloud.google.com/bigquery/docs/reference/rest/v2/Job (revision 20260707); `bq` 2.1.18.

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "execute/data/bigquery/bigquery_fields.h"
#include "ground/base/document.h"

namespace systole {

struct BigQueryTable {
  std::string project, dataset, table;

  // "project.dataset.table", "project:dataset.table", or "dataset.table" with `project`. Errors: invalid.
  static Result<BigQueryTable> parse(std::string_view text, const std::string& project);
};

enum class BigQueryWrite { empty, append, truncate };  // a table that has rows: an error, more rows, or other rows

struct BigQueryPlace {
  std::string project;        // that pays for the jobs
  std::string location = {};  // of dataset and bucket; empty: BigQuery finds it
  std::string job_id = {};    // a second job of this name is refused; empty: BigQuery names it
};

struct BigQueryJob {
  std::string name;             // query, extract, load
  Node body;                    // of POST https://bigquery.googleapis.com/bigquery/v2/projects/PROJECT/jobs
  std::vector<std::string> bq;  // the command, without the query and the schema, which it reads from files
  std::string query = {};
  std::vector<BigQueryField> fields = {};
};

// The format follows from the name: .parquet, .csv, .jsonl, .ndjson or .json, perhaps with .gz. One '*' stands for the
// numbers of the files. Errors: invalid: no such name, or no gs://BUCKET/OBJECT.
Result<std::vector<BigQueryJob>> extract_jobs(const BigQueryTable& table, const std::string& uri,
                                              const BigQueryPlace& place, const std::string& query,
                                              BigQueryWrite write);
// `fields`: none: of the Parquet file, or found by BigQuery. Errors: as extract_jobs; invalid: write empty, which
// `bq load` has not.
Result<BigQueryJob> load_job(const std::vector<std::string>& uris, const BigQueryTable& table,
                             const BigQueryPlace& place, std::vector<BigQueryField> fields, BigQueryWrite write);

// The commands as a script of sh, which ends at the first that fails.
std::string bigquery_script(const std::vector<BigQueryJob>& jobs);

}  // namespace systole
