#include "execute/data/bigquery/bigquery_jobs.h"

#include <algorithm>
#include <cctype>

#include "ground/base/shell_quoted.h"

namespace systole {
namespace {

struct Files {
  const char* format = "";
  bool gzip = false;
};

// The format of a URI, which is that of an object in a bucket.
Result<Files> files_of(const std::string& uri) {
  constexpr std::string_view kScheme = "gs://";
  const std::size_t slash = uri.starts_with(kScheme) ? uri.find('/', kScheme.size()) : uri.npos;
  const std::size_t star = uri.find('*');
  if (slash == uri.npos || slash == kScheme.size() || slash + 1 == uri.size() || star < slash ||
      std::ranges::count(uri, '*') > 1) {
    return error(ErrorKind::invalid, "'{}' names no files in a bucket", uri)
        .hinted("gs://bucket/folder/part-*.parquet; one * at most, behind the bucket");
  }
  std::string_view name = uri;
  const bool gzip = name.ends_with(".gz");
  if (gzip) name.remove_suffix(3);
  if (name.ends_with(".parquet") && !gzip) return Files{"PARQUET", false};
  if (name.ends_with(".csv")) return Files{"CSV", gzip};
  for (const std::string_view json : {".jsonl", ".ndjson", ".json"})
    if (name.ends_with(json)) return Files{"NEWLINE_DELIMITED_JSON", gzip};
  return error(ErrorKind::invalid, "the name '{}' does not say which format its files have", uri)
      .hinted("a name that ends in .parquet, .csv, .jsonl, .csv.gz or .jsonl.gz");
}

const char* disposition_of(BigQueryWrite write) {
  switch (write) {
    case BigQueryWrite::empty: return "WRITE_EMPTY";
    case BigQueryWrite::append: return "WRITE_APPEND";
    case BigQueryWrite::truncate: return "WRITE_TRUNCATE";
  }
  return "?";
}

Node node_of(const BigQueryTable& table) {
  return Node::map({{"projectId", table.project}, {"datasetId", table.dataset}, {"tableId", table.table}});
}

std::string bq_name(const BigQueryTable& table) {
  return fmt::format("{}:{}.{}", table.project, table.dataset, table.table);
}

BigQueryJob job_of(const std::string& name, const BigQueryPlace& place, const std::string& suffix, Node configuration) {
  Node reference = Node::map({{"projectId", place.project}});
  BigQueryJob job{.name = name, .body = Node::map(), .bq = {"bq", "--project_id=" + place.project}};
  if (!place.location.empty()) {
    reference.set("location", place.location);
    job.bq.push_back("--location=" + place.location);
  }
  if (!place.job_id.empty()) {
    reference.set("jobId", place.job_id + suffix);
    job.bq.push_back("--job_id=" + place.job_id + suffix);
  }
  job.body.set("jobReference", std::move(reference));
  job.body.set("configuration", Node::map({{name, std::move(configuration)}}));
  job.bq.push_back(name);
  return job;
}

BigQueryJob query_job(const BigQueryTable& table, const BigQueryPlace& place, const std::string& query,
                      BigQueryWrite write) {
  BigQueryJob job = job_of("query", place, "-query",
                           Node::map({{"query", query},
                                      {"useLegacySql", false},
                                      {"destinationTable", node_of(table)},
                                      {"writeDisposition", disposition_of(write)}}));
  job.query = query;
  for (const char* word : {"--use_legacy_sql=false", "--max_rows=0"}) job.bq.emplace_back(word);
  job.bq.push_back("--destination_table=" + bq_name(table));
  if (write == BigQueryWrite::append) job.bq.emplace_back("--append_table");
  if (write == BigQueryWrite::truncate) job.bq.emplace_back("--replace");
  return job;
}

Node node_of(const std::vector<BigQueryField>& fields) {
  Node list = Node::sequence();
  for (const BigQueryField& field : fields)
    list.push(Node::map({{"name", field.name}, {"type", field.type}, {"mode", field.mode}}));
  return list;
}

// A line that ends a text of several lines in sh, and is none of it.
std::string end_of(const std::string& text) {
  std::string end = "END";
  while (("\n" + text + "\n").find("\n" + end + "\n") != std::string::npos) end += "_";
  return end;
}

std::string fed(const std::string& command, const std::string& text) {
  const std::string end = end_of(text);
  return fmt::format("{} <<'{}'\n{}{}{}\n", command, end, text, text.ends_with('\n') ? "" : "\n", end);
}

Status check_job_id(const std::string& id) {
  const bool fits = id.size() <= 1000 && std::ranges::all_of(id, [](unsigned char c) {
                      return std::isalnum(c) != 0 || c == '_' || c == '-';
                    });
  if (fits) return {};
  return error(ErrorKind::invalid, "'{}' is no name of a job: letters, digits, '_' and '-', at most 1,000", id)
      .hinted("--job-id answers-2026-11-28");
}

}  // namespace

Result<BigQueryTable> BigQueryTable::parse(std::string_view text, const std::string& project) {
  BigQueryTable made;
  const std::size_t dot = text.rfind('.');
  const std::string_view before = text.substr(0, dot);
  const std::size_t behind = before.find_last_of(".:");
  if (dot != text.npos) {
    made.table = text.substr(dot + 1);
    made.dataset = behind == before.npos ? before : before.substr(behind + 1);
    made.project = behind == before.npos ? std::string_view(project) : before.substr(0, behind);
  }
  const bool is_dataset = !made.dataset.empty() && std::ranges::all_of(made.dataset, [](unsigned char c) {
    return std::isalnum(c) != 0 || c == '_';
  });
  if (!is_dataset || made.table.empty() || made.table.find_first_of("/\\`'\"*?\n") != made.table.npos) {
    return error(ErrorKind::invalid, "'{}' is no table of BigQuery", text)
        .hinted("PROJECT.DATASET.TABLE, or DATASET.TABLE with --project");
  }
  if (made.project.empty()) {
    return error(ErrorKind::invalid, "'{}' does not say of which project the table is", text)
        .hinted(fmt::format("--project my-project, or my-project.{}", text));
  }
  return made;
}

Result<std::vector<BigQueryJob>> extract_jobs(const BigQueryTable& table, const std::string& uri,
                                              const BigQueryPlace& place, const std::string& query,
                                              BigQueryWrite write) {
  TRY(check_job_id(place.job_id));
  const Files files = TRY(files_of(uri));
  const bool is_parquet = std::string_view(files.format) == "PARQUET";
  const std::string compression = is_parquet ? "SNAPPY" : files.gzip ? "GZIP" : "NONE";
  std::vector<BigQueryJob> jobs;
  if (!query.empty()) jobs.push_back(query_job(table, place, query, write));
  BigQueryJob job = job_of("extract", place, query.empty() ? "" : "-extract",
                           Node::map({{"sourceTable", node_of(table)},
                                      {"destinationUris", Node::sequence({uri})},
                                      {"destinationFormat", files.format},
                                      {"compression", compression}}));
  job.bq.push_back(std::string("--destination_format=") + files.format);
  job.bq.push_back("--compression=" + compression);
  job.bq.push_back(bq_name(table));
  job.bq.push_back(uri);
  jobs.push_back(std::move(job));
  return jobs;
}

Result<BigQueryJob> load_job(const std::vector<std::string>& uris, const BigQueryTable& table,
                             const BigQueryPlace& place, std::vector<BigQueryField> fields, BigQueryWrite write) {
  TRY(check_job_id(place.job_id));
  if (write == BigQueryWrite::empty)
    return error(ErrorKind::invalid, "`bq load` does not ask whether a table is empty")
        .hinted("--write append or --write truncate");
  const Files files = TRY(files_of(uris.at(0)));
  Node sources = Node::sequence();
  std::string joined;
  for (const std::string& uri : uris) {
    if (std::string_view(TRY(files_of(uri)).format) != files.format)
      return error(ErrorKind::invalid, "'{}' and '{}' are of two formats", uris[0], uri)
          .hinted("load them one after the other");
    sources.push(uri);
    joined += (joined.empty() ? "" : ",") + uri;
  }
  Node configuration = Node::map({{"sourceUris", std::move(sources)},
                                  {"sourceFormat", files.format},
                                  {"destinationTable", node_of(table)},
                                  {"writeDisposition", disposition_of(write)}});
  std::vector<std::string> words{std::string("--source_format=") + files.format};
  words.emplace_back(write == BigQueryWrite::truncate ? "--replace" : "--noreplace");
  const bool is_csv = std::string_view(files.format) == "CSV", is_parquet = std::string_view(files.format) == "PARQUET";
  if (is_parquet) {
    configuration.set("parquetOptions", Node::map({{"enableListInference", true}}));
    words.emplace_back("--parquet_enable_list_inference=true");
  }
  if (is_csv) {
    configuration.set("skipLeadingRows", 1).set("allowQuotedNewlines", true);
    words.insert(words.end(), {"--skip_leading_rows=1", "--allow_quoted_newlines=true"});
  }
  if (!fields.empty()) {
    configuration.set("schema", Node::map({{"fields", node_of(fields)}}));
  } else if (!is_parquet) {
    configuration.set("autodetect", true);
    words.emplace_back("--autodetect=true");
  }
  BigQueryJob job = job_of("load", place, "", std::move(configuration));
  job.bq.insert(job.bq.end(), words.begin(), words.end());
  job.bq.push_back(bq_name(table));
  job.bq.push_back(joined);
  job.fields = std::move(fields);
  return job;
}

std::string bigquery_script(const std::vector<BigQueryJob>& jobs) {
  std::string script = "#!/bin/sh\nset -eu\n";
  for (const BigQueryJob& job : jobs) {
    const std::string line = shell_line(job.bq);
    if (!job.query.empty()) {
      script += fed(line, job.query);
    } else if (!job.fields.empty()) {
      script += "schema=$(mktemp)\ntrap 'rm -f \"$schema\"' EXIT\n";
      script += fed("cat >\"$schema\"", to_json(node_of(job.fields), 2));
      script += line + " \"$schema\"\n";
    } else {
      script += line + "\n";
    }
  }
  return script;
}

}  // namespace systole
