// `systole ckpt list | show | verify | diff | export | bless | unbless`: the checkpoints of a run. ckpt_reshard.cc has
// `reshard` and `public-key`.

#include <filesystem>
#include <set>

#include "execute/checkpoint/compare.h"
#include "execute/checkpoint/inspect.h"
#include "execute/checkpoint/retention.h"
#include "execute/weights/hf_folder.h"
#include "ground/base/counted.h"
#include "ground/base/errors.h"
#include "ground/base/files.h"
#include "ground/base/parallel.h"
#include "ground/base/quantity.h"
#include "ground/base/units.h"
#include "operate/cli/ckpt_reshard.h"
#include "operate/cli/command.h"
#include "operate/run/run_places.h"
#include "operate/run/run_weights.h"

namespace systole::cli {
namespace {

using checkpoint::Checkpoint;

struct CkptOptions {
  std::string run, other, tensor, out, role = "parameters", to, shard = "5GB";
  checkpoint::KeyRefs keys;
  bool adapters = false;
};

std::string dims(const Shape& shape) {
  std::string text;
  for (std::int64_t size : shape) text += fmt::format("{}{}", text.empty() ? "" : ", ", size);
  return "[" + text + "]";
}

Node maybe(const std::optional<double>& number) { return number ? Node(*number) : Node(); }

const char* verdict_on(const Error& unreadable) {
  return checkpoint::is_refused(unreadable) ? "cannot be read" : "damaged";
}

std::string health_of(const checkpoint::Summary& s) {
  if (s.unreadable) return fmt::format("{}: {}", verdict_on(*s.unreadable), s.unreadable->message);
  if (!s.missing_chunks.empty())
    return fmt::format("damaged: {} missing", counted(s.missing_chunks.size(), "chunk file"));
  return s.blessed ? "blessed" : "";
}

std::vector<std::string> cells(const checkpoint::Summary& s) {
  if (s.unreadable) return {with_commas(s.step), "-", "-", "-", "-", "-", health_of(s)};
  return {with_commas(s.step),
          s.date.substr(0, 19),
          s.metric ? fmt::format("{:.4f}", *s.metric) : "-",
          std::to_string(s.num_tensors),
          to_string(s.chunk_bytes),
          to_string(s.own_bytes),
          health_of(s)};
}

// Hints for unreadable checkpoints, each once.
void tell_hints(const std::vector<checkpoint::Summary>& all, Context& context) {
  std::set<std::string> hints;
  for (const checkpoint::Summary& s : all)
    if (s.unreadable && !s.unreadable->hint.empty() && hints.insert(s.unreadable->hint).second)
      context.out.message("hint: " + s.unreadable->hint);
}

ExitCode ckpt_list(const CkptOptions& options, Context& context) {
  const CheckpointPlace place = find_checkpoints(options.run, options.keys).value();
  std::vector<std::vector<std::string>> rows;
  Node list = Node::sequence();
  const std::vector<checkpoint::Summary> all = checkpoint::list(place.folder).value();
  for (const checkpoint::Summary& s : all) {
    rows.push_back(cells(s));
    list.push(Node::map({{"step", s.step},
                         {"date", s.date},
                         {"metric", maybe(s.metric)},
                         {"blessed", s.blessed},
                         {"readable", !s.unreadable.has_value()},
                         {"missing_chunks", s.missing_chunks.size()},
                         {"tensors", s.num_tensors},
                         {"bytes", s.chunk_bytes.count()},
                         {"own_bytes", s.own_bytes.count()}}));
  }
  if (rows.empty())
    context.out.message(fmt::format("no checkpoint in '{}'", place.path));
  else
    context.out.data(table({"step>", "written (UTC)", "metric>", "tensors>", "size>", "freed if deleted>", ""}, rows,
                           context.out.width()));
  tell_hints(all, context);
  context.out.json(Node::map({{"folder", place.path}, {"checkpoints", list}}));
  return ExitCode::done;
}

void show_tensor(const Checkpoint& from, const std::string& name, Context& context) {
  const checkpoint::TensorSummary s = checkpoint::summarize(from, name).value();
  const checkpoint::TensorEntry& entry = *from.manifest().find(name);
  context.out.data(fmt::format("{}  {}{}  {}\n  min {:.6g}  max {:.6g}  mean {:.6g}  rms {:.6g}  not finite {}\n", name,
                               name_of(entry.dtype), dims(entry.shape), counted(s.elements, "element"), s.min, s.max,
                               s.mean, s.rms, with_commas(s.not_finite)));
  context.out.json(Node::map({{"name", name},
                              {"dtype", name_of(entry.dtype)},
                              {"elements", s.elements},
                              {"min", s.min},
                              {"max", s.max},
                              {"mean", s.mean},
                              {"rms", s.rms},
                              {"not_finite", s.not_finite}}));
}

// What a run keeps beside its tensors, by dotted name.
void add_extra(const std::string& name, const Node& value, std::vector<std::vector<std::string>>& rows) {
  if (value.is_map()) {
    for (const Node::Entry& entry : value.entries())
      add_extra(name.empty() ? entry.key : name + "." + entry.key, entry.value, rows);
  } else {
    rows.push_back({name, value.is_scalar() ? value.text() : to_json(value)});
  }
}

std::string head_of(const checkpoint::Manifest& m, int width) {
  std::string text =
      folded(fmt::format("step {}  {}  model {} {}\n", m.step, m.date, m.identity.model, m.identity.model_hash), width);
  std::vector<std::vector<std::string>> rows;
  add_extra("", m.extra, rows);
  return rows.empty() ? text : text + table({"extra", ""}, rows, width);
}

ExitCode ckpt_show(const CkptOptions& options, Context& context) {
  const CheckpointPlace place = find_checkpoints(options.run, options.keys).value();
  const Checkpoint from = open_checkpoint(place).value();
  if (!options.tensor.empty()) {
    show_tensor(from, options.tensor, context);
    return ExitCode::done;
  }
  const checkpoint::Manifest& m = from.manifest();
  std::vector<std::vector<std::string>> rows;
  Node tensors = Node::sequence();
  for (const checkpoint::TensorEntry& t : m.tensors) {
    rows.push_back(
        {t.name, name_of(t.role), name_of(t.dtype) + std::string() + dims(t.shape), with_commas(t.bytes().count())});
    tensors.push(Node::map(
        {{"name", t.name}, {"role", name_of(t.role)}, {"dtype", name_of(t.dtype)}, {"bytes", t.bytes().count()}}));
  }
  context.out.data(head_of(m, context.out.width()) +
                   table({"tensor", "role", "type", "bytes>"}, rows, context.out.width()));
  context.out.json(Node::map({{"step", m.step},
                              {"date", m.date},
                              {"model", m.identity.model},
                              {"model_hash", m.identity.model_hash},
                              {"workload_hash", m.identity.workload_hash},
                              {"metric", maybe(m.metric)},
                              {"extra", m.extra},
                              {"tensors", tensors}}));
  return ExitCode::done;
}

// Result of verifying one checkpoint, as a line and a node; false if it is damaged.
struct Verified {
  std::size_t well = 0, damaged = 0;  // checkpoints; one unreadable for this user or key is neither
};

void verify_step(const CheckpointPlace& place, std::int64_t step, Node& list, std::string& text, Verified& verified) {
  const auto manifest = checkpoint::load_manifest(place.folder, step);
  if (!manifest.ok()) {
    const Error damage = below(place.root, manifest.error());
    text += fmt::format("step {}: {}: {}\n", step, verdict_on(damage), to_string(damage));
    list.push(Node::map({{"step", step}, {"well", false}, {"error", error_node(damage)}}));
    if (!checkpoint::is_refused(damage)) ++verified.damaged;
    return;
  }
  const auto damage =
      checkpoint::find_damage(place.folder, *manifest, checkpoint::Verify::contents, io_threads()).value();
  Node chunks = Node::sequence();
  for (const checkpoint::Damage& d : damage) {
    const Error reason = below(place.root, d.reason);
    text += fmt::format("step {}: damaged: {} ({} of {})\n", step, to_string(reason), d.tensors.size(),
                        counted(manifest->tensors.size(), "tensor"));
    Node names = Node::sequence();
    for (const std::string& name : d.tensors) names.push(name);
    chunks.push(Node::map({{"chunk", d.chunk}, {"error", error_node(d.reason)}, {"tensors", names}}));
  }
  if (damage.empty()) text += fmt::format("step {}: OK, {} read\n", step, to_string(manifest->chunk_bytes()));
  list.push(Node::map(
      {{"step", step}, {"well", damage.empty()}, {"bytes_read", manifest->chunk_bytes().count()}, {"damage", chunks}}));
  ++(damage.empty() ? verified.well : verified.damaged);
}

ExitCode ckpt_verify(const CkptOptions& options, Context& context) {
  const CheckpointPlace place = find_checkpoints(options.run, options.keys).value();
  const std::vector<std::int64_t> steps =
      place.step ? std::vector{*place.step} : checkpoint::list_steps(place.folder).value();
  if (steps.empty()) fail(told_in(place, error(ErrorKind::not_found, "there is no checkpoint in '{}'", place.path)));
  Node list = Node::sequence();
  std::string text;
  Verified verified;
  for (const std::int64_t step : steps) verify_step(place, step, list, text, verified);
  context.out.data(text);
  context.out.json(Node::map({{"folder", place.path}, {"checkpoints", list}}));
  if (verified.well == steps.size()) return ExitCode::done;
  if (verified.well > 0) {
    context.out.message("hint: resume and generate take the newest that verifies");
  } else if (verified.damaged > 0) {
    context.out.message("hint: none verifies: bring the folder back from a copy, or train anew in another --folder");
  }
  return ExitCode::no;
}

ExitCode ckpt_diff(const CkptOptions& options, Context& context) {
  const CheckpointPlace a = find_checkpoints(options.run, options.keys).value(),
                        b = find_checkpoints(options.other, options.keys).value();
  std::vector<std::vector<std::string>> rows;
  Node list = Node::sequence();
  std::size_t tensors = 0;
  const std::vector<checkpoint::TensorDiff> all =
      checkpoint::diff(open_checkpoint(a).value(), open_checkpoint(b).value()).value();
  for (const checkpoint::TensorDiff& d : all) {
    ++tensors;
    if (d.kind == checkpoint::TensorDiff::Kind::equal) continue;
    const bool values = d.kind == checkpoint::TensorDiff::Kind::values;
    rows.push_back({d.name, name_of(d.kind),
                    values ? fmt::format("{} of {}", with_commas(d.differing), with_commas(d.elements)) : d.text,
                    values ? fmt::format("{:.3g}", d.max_abs) : "", values ? with_commas(d.first) : ""});
    list.push(Node::map({{"name", d.name},
                         {"kind", name_of(d.kind)},
                         {"elements", d.elements},
                         {"differing", d.differing},
                         {"max_abs", d.max_abs},
                         {"first", d.first},
                         {"text", d.text}}));
  }
  if (rows.empty())
    context.out.data(fmt::format("the same: {}, every bit\n", counted(tensors, "tensor")));
  else
    context.out.data(table({"tensor", "", "elements that differ", "largest>", "first>"}, rows, context.out.width()) +
                     fmt::format("{} of {} differ\n", rows.size(), counted(tensors, "tensor")));
  context.out.json(Node::map({{"tensors", tensors}, {"equal", rows.empty()}, {"differences", list}}));
  return rows.empty() ? ExitCode::done : ExitCode::no;
}

// As a Hugging Face model: weights, config.json and the tokenizer's files.
ExitCode export_model(const CkptOptions& options, Context& context) {
  const CheckpointPlace place = find_checkpoints(options.run, options.keys).value();
  const RunPlace run = open_run(parse_checkpoint_reference(options.run).run).value();
  const Checkpoint from = open_checkpoint(place).value();
  const std::filesystem::path to = absolute_path(options.to).value();
  std::error_code failed;
  std::filesystem::create_directories(to, failed);
  if (failed) {
    fail(error(ErrorKind::io, "cannot make the folder '{}': {}", options.to, failed.message())
             .hinted("--to: a folder that may be made and written"));
  }
  const std::unique_ptr<Store> store = open_posix_store(to.string()).value();
  const std::int64_t rank = workload_of(run).value().model.adapters().rank;
  const bool merged = rank > 0 && !options.adapters;
  const ExportedFiles files = options.adapters
                                  ? export_peft_folder(run, from, *store).value()
                                  : export_hf_folder(run, from, *store, {parse_bytes(options.shard).value()}).value();
  context.out.data(fmt::format("{}: {} of step {}, {}: {}", options.to, counted(files.tensors, "tensor"),
                               from.manifest().step, to_string(files.bytes), fmt::join(files.files, ", ")));
  if (merged) {
    context.out.notice(fmt::format(
        "its adapters, of rank {}, are merged into the weights; with --adapters they are written alone, as PEFT keeps "
        "them",
        rank));
  }
  Node list = Node::sequence();
  for (const std::string& file : files.files) list.push(file);
  context.out.json(Node::map({{"folder", options.to},
                              {"step", from.manifest().step},
                              {"tensors", files.tensors},
                              {"bytes", files.bytes.count()},
                              {"merged_adapters", merged},
                              {"files", list}}));
  return ExitCode::done;
}

ExitCode ckpt_export(const CkptOptions& options, Context& context) {
  if (options.out.empty() == options.to.empty()) {
    fail(error(ErrorKind::invalid, "ckpt export takes a file, or --to with a folder")
             .hinted("systole ckpt export RUN model.safetensors, or systole ckpt export RUN --to FOLDER"));
  }
  if (!options.to.empty()) return export_model(options, context);
  if (options.adapters) {
    fail(error(ErrorKind::invalid, "--adapters writes a folder")
             .hinted("systole ckpt export RUN --to FOLDER --adapters"));
  }
  const CheckpointPlace place = find_checkpoints(options.run, options.keys).value();
  const Checkpoint from = open_checkpoint(place).value();
  const std::filesystem::path out = absolute_path(options.out).value();
  Result<std::unique_ptr<Store>> folder = open_posix_store(out.parent_path().string());
  if (!folder.ok()) fail(std::move(folder).error().hinted("make the folder first, or name a file in another one"));
  const std::unique_ptr<Store> store = *std::move(folder);
  const checkpoint::Role role = options.role == "state" ? checkpoint::Role::state : checkpoint::Role::parameter;
  checkpoint::export_safetensors(from, role, *store, out.filename().string()).value();
  const Bytes size = store->size(out.filename().string()).value();
  context.out.data(
      fmt::format("{}: {} of step {}, {}", options.out, options.role, from.manifest().step, to_string(size)));
  context.out.json(Node::map({{"file", options.out}, {"step", from.manifest().step}, {"bytes", size.count()}}));
  return ExitCode::done;
}

ExitCode mark(const CkptOptions& options, Context& context, bool blessed) {
  const CheckpointPlace place = find_checkpoints(options.run, options.keys).value();
  const std::int64_t step = place.step ? *place.step : open_checkpoint(place).value().manifest().step;
  (blessed ? checkpoint::bless(place.folder, step) : checkpoint::unbless(place.folder, step)).value();
  context.out.message(
      fmt::format("step {} {}", step, blessed ? "is blessed: it is never removed" : "is no longer blessed"));
  context.out.json(Node::map({{"folder", place.path}, {"step", step}, {"blessed", blessed}}));
  return ExitCode::done;
}
ExitCode ckpt_bless(const CkptOptions& options, Context& context) { return mark(options, context, true); }
ExitCode ckpt_unbless(const CkptOptions& options, Context& context) { return mark(options, context, false); }

}  // namespace

void add_ckpt(Subcommand app, Context& context) {
  Subcommand group = add_group(app, "ckpt", "the checkpoints of a run");
  const auto add = [&](const char* name, const char* help, ExitCode (*run)(const CkptOptions&, Context&)) {
    auto options = std::make_shared<CkptOptions>();
    Subcommand command = add_command(group, name, help, options, context, run);
    Option place = command.add_option(
        "run", options->run,
        "RUN or RUN@STEP: a run's folder, name or number, or a checkpoint folder; without: the newest");
    add_key_options(command, options->keys);
    return std::tuple<Subcommand, Option, CkptOptions&>(command, place, *options);
  };
  add("list", "the checkpoints there are", ckpt_list);
  auto [show, show_run, show_options] = add("show", "the tensors of one, or one tensor's numbers", ckpt_show);
  show.add_option("--tensor", show_options.tensor, "this tensor's smallest, largest and mean number");
  add("verify", "read every byte and its checksum", ckpt_verify);
  auto [diff, diff_run, diff_options] =
      add("diff", "two of them, tensor by tensor; ends with 1 when they differ", ckpt_diff);
  diff_run.required();
  diff.add_option("other", diff_options.other, "the second one, as the first").required();
  auto [out, out_run, out_options] =
      add("export", "write one as a safetensors file, or as a Hugging Face model", ckpt_export);
  out_run.required();
  out.add_option("file", out_options.out, "the file to write, tensors named as here");
  out.add_option("--to", out_options.to,
                 "instead: the folder to write as a Hugging Face model, with config.json and tokenizer");
  out.add_flag("--adapters", out_options.adapters,
               "with --to: of a run with adapters these alone, in PEFT's layout, for the weights that it began from");
  out.add_option("--shard-size", out_options.shard, "with --to: a file takes no more than this, as 5GB")
      .capture_default_str();
  out.add_option("--role", out_options.role, "parameters, or state of the optimizer")
      .check(one_of({"parameters", "state"}))
      .capture_default_str();
  add("bless", "mark one so that it is never removed", ckpt_bless);
  add("unbless", "take that mark away", ckpt_unbless);
  add_ckpt_reshard(group, context);
  add_ckpt_public_key(group, context);
}

}  // namespace systole::cli
