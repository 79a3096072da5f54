// `systole data bigquery FROM TO`: the jobs that take a table to files in a bucket, or files to a table; printed or
// written, and not sent.

#include "operate/cli/data_bigquery.h"

#include "execute/data/bigquery/bigquery_jobs.h"
#include "execute/data/file_patterns.h"
#include "execute/data/formats/parquet/reader.h"
#include "ground/base/counted.h"
#include "ground/base/files.h"
#include "ground/base/shell_quoted.h"
#include "ground/base/text_file.h"
#include "operate/cli/comma_list.h"
#include "operate/run/rendered_folder.h"

namespace systole::cli {
namespace {

struct BigQueryOptions {
  std::string from, to, query, schema, write, out;
  BigQueryPlace place;
  bool replace = false;
};

bool is_bucket(const std::string& text) { return text.starts_with("gs://"); }

BigQueryWrite write_of(const BigQueryOptions& options, BigQueryWrite otherwise) {
  if (options.write.empty()) return otherwise;
  return options.write == "append"     ? BigQueryWrite::append
         : options.write == "truncate" ? BigQueryWrite::truncate
                                       : BigQueryWrite::empty;
}

// The text, or that of the file.
std::string query_of(const std::string& asked) {
  if (!asked.ends_with(".sql")) return asked;
  std::string text = read_text_file(asked).value();
  if (text.find_first_not_of(" \n\t\r") == std::string::npos)
    fail(error(ErrorKind::invalid, "the file has no query").at({asked}).hinted("write one, or leave --query out"));
  return text;
}

std::vector<BigQueryField> fields_of(const std::string& schema) {
  if (schema.empty()) return {};
  if (!schema.ends_with(".parquet")) return parse_bigquery_fields(schema).value();
  const std::unique_ptr<Store> root = open_posix_store("/").value();
  if (is_folder(schema)) fail(folder_for_files(schema, ".parquet"));
  const parquet::File file = parquet::File::open(*root, below_root(schema).value(), schema).value();
  return bigquery_fields(file.metadata()).value();
}

std::vector<BigQueryJob> jobs_of(const BigQueryOptions& options) {
  if (is_bucket(options.from) == is_bucket(options.to)) {
    fail(error(ErrorKind::invalid, "one of '{}' and '{}' is a table, the other files in a bucket", options.from,
               options.to)
             .hinted("systole data bigquery my-project.shop.reviews 'gs://bucket/reviews/*.parquet', or the other way "
                     "round"));
  }
  const bool is_load = is_bucket(options.from);
  const BigQueryTable table = BigQueryTable::parse(is_load ? options.to : options.from, options.place.project).value();
  BigQueryPlace place = options.place;
  if (place.project.empty()) place.project = table.project;
  if (!is_load) {
    if (!options.schema.empty())
      fail(error(ErrorKind::invalid, "--schema: a table that is extracted has its own").hinted("leave --schema out"));
    if (options.query.empty() && !options.write.empty())
      fail(error(ErrorKind::invalid, "--write: without --query the table is only read").hinted("leave --write out"));
    return extract_jobs(table, options.to, place, query_of(options.query), write_of(options, BigQueryWrite::empty))
        .value();
  }
  if (!options.query.empty())
    fail(error(ErrorKind::invalid, "--query: files are loaded as they are").hinted("leave --query out"));
  return {load_job(comma_list(options.from), table, place, fields_of(options.schema),
                   write_of(options, BigQueryWrite::append))
              .value()};
}

Node node_of(const std::vector<BigQueryJob>& jobs) {
  Node list = Node::sequence();
  for (const BigQueryJob& job : jobs) {
    const std::string project = job.body.find("jobReference")->text_at("projectId");
    list.push(Node::map({{"name", job.name},
                         {"url", fmt::format("https://bigquery.googleapis.com/bigquery/v2/projects/{}/jobs", project)},
                         {"body", job.body}}));
  }
  return list;
}

ExitCode data_bigquery(const BigQueryOptions& options, Context& context) {
  const std::vector<BigQueryJob> jobs = jobs_of(options);
  const std::string script = bigquery_script(jobs);
  context.out.json(Node::map({{"jobs", node_of(jobs)}, {"script", script}}));
  if (is_bucket(options.to) && options.to.find('*') == std::string::npos)
    context.out.message("BigQuery refuses to write more than 1 GB into one file; a * in the name makes several");
  if (options.out.empty()) {
    context.out.data(script);
    return ExitCode::done;
  }
  Rendered rendered{.run = "bigquery"};
  for (const BigQueryJob& job : jobs) rendered.files.push_back({job.name + ".json", to_json(job.body, 2) + "\n"});
  rendered.files.push_back({"bigquery.sh", script, true});
  write_rendered(rendered, options.out, options.replace).value();
  context.out.message(fmt::format("{} in {}: sh {} runs them, in this order", counted(jobs.size(), "job"), options.out,
                                  shell_word(options.out + "/bigquery.sh")));
  return ExitCode::done;
}

}  // namespace

void add_data_bigquery(Subcommand group, Context& context) {
  auto options = std::make_shared<BigQueryOptions>();
  Subcommand command =
      add_command(group, "bigquery", "the jobs of BigQuery that take a table to files in a bucket, or files to a table",
                  options, context, data_bigquery);
  command.add_option("from", options->from, "a table, PROJECT.DATASET.TABLE; or files, gs://BUCKET/x-*.parquet")
      .required();
  command.add_option("to", options->to, "files, whose name says the format (.parquet, .csv, .jsonl); or a table")
      .required();
  command.add_option("--query", options->query,
                     "of a table that is extracted: the SQL that fills it before, or a file of it that ends in .sql");
  command
      .add_option("--write", options->write,
                  "what becomes of the rows of a table that is filled: empty (there must be none; usual with --query), "
                  "append (usual for files) or truncate")
      .check(one_of({"empty", "append", "truncate"}));
  command.add_option("--schema", options->schema,
                     "of files: name:type,name:type:mode, or a Parquet file of this machine with the same columns");
  command.add_option("--project", options->place.project, "that runs the jobs; without: the table's");
  command.add_option("--location", options->place.location, "of dataset and bucket, as EU or us-central1");
  command.add_option("--job-id", options->place.job_id,
                     "the jobs' name: BigQuery runs no second one of that name, so that no row is there twice");
  command.add_option("--out", options->out,
                     "a folder for the bodies as JSON and the script, which is not printed then");
  command.add_flag("--replace", options->replace, "overwrite what is in the folder").needs("--out");
}

}  // namespace systole::cli
