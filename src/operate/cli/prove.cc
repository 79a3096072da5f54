// `systole prove MODULE --on SLICE`: the vendor compiler's result for a program on chips that are not rented yet; of a
// workload with data.buckets for the step of each length. The compiler runs in a child process, this program with
// --child.

#include <algorithm>

#include "ground/base/counted.h"
#include "ground/process/signal_watch.h"
#include "ground/store/store.h"
#include "operate/cli/workload_options.h"
#include "operate/run/machine.h"
#include "operate/run/prove_workload.h"
#include "predict/prove/compiler_comparison_text.h"
#include "predict/prove/lengths_text.h"
#include "predict/prove/module_text.h"
#include "predict/prove/proof_store.h"
#include "predict/prove/proof_text.h"
#include "predict/prove/published.h"

namespace systole::cli {
namespace {

bool is_workload(const std::string& path) { return path.ends_with(".yaml") || path.ends_with(".yml"); }

ExitCode list_cache(Context& context) {
  std::string folder;
  const std::unique_ptr<Store> store = prove::open_proof_store(folder).value();
  const std::vector<prove::ProofCache::Entry> entries =
      store == nullptr ? std::vector<prove::ProofCache::Entry>() : prove::ProofCache(*store).list().value();
  context.out.prose(prove::cache_text(entries, folder, context.out.width()));
  Node list = Node::sequence();
  for (const prove::ProofCache::Entry& entry : entries) {
    Node node = to_node(entry.proof);
    list.push(node.set("key", entry.key).set("size_bytes", entry.size.count()));
  }
  context.out.json(Node::map({{"folder", folder}, {"proofs", std::move(list)}}));
  return ExitCode::done;
}

using Steps = std::vector<prove::JobOnSlice>;

// The workload's steps, by length of their rows; empty for a module, which only the compiler understands.
Steps steps_asked(const ProveArguments& arguments, const prove::Slice& slice, const Catalog& catalog,
                  Context& context) {
  if (!is_workload(arguments.file)) return {};
  StepsOnSlice asked = steps_on({.path = arguments.file, .environment = arguments.environment, .sets = arguments.sets},
                                arguments.mesh, slice, catalog)
                           .value();
  if (asked.note) context.out.warning(*asked.note);
  if (asked.steps.back().module.devices == 1 && slice.devices > 1)
    context.out.message(fmt::format("{} has no mesh: one of {} is used; --mesh data={} uses all", arguments.file,
                                    counted(slice.devices, "device"), slice.devices));
  return std::move(asked.steps);
}

ExitCode tell_prediction(const ProveArguments& arguments, const Steps& steps, const prove::Slice& slice,
                         Context& context) {
  if (steps.empty())
    fail(
        error(ErrorKind::invalid, "--predict: '{}' is no workload: of a module only its compiler knows", arguments.file)
            .hinted("systole prove job.yaml --on v5e:2x2 --predict, or leave --predict out"));
  const prove::JobOnSlice& longest = steps.back();
  Node document = prove::predicted_node(longest, slice);
  context.out.prose(prove::predicted_text(longest, slice));
  const bool fit = std::ranges::all_of(steps, [&](const auto& step) { return step.peak.needed() <= slice.memory; });
  if (longest.length > 0) {
    context.out.prose(prove::predicted_lengths_text(steps, slice, context.out.width()));
    document.set("fits", fit).set("lengths", prove::predicted_lengths_node(steps, slice));
  }
  context.out.json(std::move(document));
  return fit ? ExitCode::done : ExitCode::no;
}

// Proves one program after the other. `steps`: those of a workload; empty: a module.
std::vector<prove::Proved> proved(const ProveArguments& arguments, const Steps& steps, const prove::Slice& slice,
                                  prove::ProveOptions options, Context& context) {
  std::string what;
  const SignalWatch signals;
  options.limits.stop = [&signals] { return signals.stop_requested(); };
  options.limits.progress = [&](const prove::ChildProgress& seen) {
    context.out.progress(fmt::format("{} {} for {}: {:.0f} s, {}", seen.started ? "compiling" : "starting the compiler",
                                     what, slice.name, seen.time.count(), to_string(seen.resident)));
  };
  std::string folder;
  std::unique_ptr<Store> store;
  if (Result<std::unique_ptr<Store>> opened = prove::open_proof_store(folder); opened.ok())
    store = *std::move(opened);
  else
    context.out.warning(opened.error());
  std::optional<prove::ProofCache> cache;
  if (store != nullptr) cache.emplace(*store);
  std::vector<prove::Proved> all;
  const auto prove_one = [&](const std::string& code, std::int64_t length) {
    what = length > 0 ? fmt::format("{}, rows of {},", arguments.file, length) : arguments.file;
    Result<prove::Proved> one =
        prove::prove(code, arguments.file, slice, options, cache ? &*cache : nullptr, context.clock);
    if (!one.ok() && length > 0) {
      Error why = std::move(one).error();
      why.message.insert(0, fmt::format("rows of {}: ", length));
      fail(why);
    }
    all.push_back(std::move(one).value());
    context.out.end_progress();
    for (const Error& note : all.back().notes)
      if (all.size() == 1) context.out.warning(note);
  };
  if (steps.empty()) prove_one(prove::read_module(arguments.file).value(), 0);
  for (const prove::JobOnSlice& step : steps) prove_one(step.module.text, step.length);
  return all;
}

// Of several lengths the longest in full, and a line for each.
ExitCode tell_proofs(const ProveArguments& arguments, const std::vector<prove::Proved>& proofs, const Steps& steps,
                     const prove::Slice& slice, Context& context) {
  const prove::Proof& proof = proofs.back().proof;
  const prove::JobOnSlice* job = steps.empty() ? nullptr : &steps.back();
  const int width = context.out.width();
  const bool fit = std::ranges::all_of(proofs, [](const prove::Proved& one) { return one.proof.fits; });
  context.out.prose(
      prove::proof_text(proof, slice, job != nullptr ? job->name : arguments.file, proofs.back().cached, width) +
      (job != nullptr ? prove::beside_text(*job, proof, width) : ""));
  Node document = to_node(proof);
  if (job != nullptr) document.set("program", prove::beside_node(*job, proof));
  if (proof.step) document.set("published", prove::known_ratio_node(prove::published_steps(), slice.chip));
  if (job != nullptr && job->length > 0) {
    context.out.prose(prove::lengths_text(steps, proofs, width));
    document.set("fits", fit).set("lengths", prove::lengths_node(steps, proofs));
  }
  context.out.json(document.set("file", arguments.file).set("cached", proofs.back().cached));
  if (fit && !proof.whole && !arguments.time)
    context.out.message(fmt::format("next: systole prove {} --time", words_of(arguments)));
  return fit ? ExitCode::done : ExitCode::no;
}

ExitCode prove_it(const ProveArguments& arguments, Context& context) {
  if (!arguments.child.empty()) {
    prove::compile_here(arguments.child).value();
    return ExitCode::done;
  }
  if (arguments.list) return list_cache(context);
  const Catalog catalog = read_catalog().value();
  const prove::Slice slice = slice_asked(arguments, catalog).value();
  prove::ProveOptions options = options_of(arguments).value();
  const Steps steps = steps_asked(arguments, slice, catalog, context);
  if (!steps.empty()) options.partitions = steps.back().module.devices;
  if (arguments.predict) return tell_prediction(arguments, steps, slice, context);
  const std::vector<prove::Proved> proofs = proved(arguments, steps, slice, std::move(options), context);
  return tell_proofs(arguments, proofs, steps, slice, context);
}

}  // namespace

void add_prove(Subcommand app, Context& context) {
  auto options = std::make_shared<ProveArguments>();
  Subcommand command =
      add_command(app, "prove", "let the vendor's compiler judge a program for chips that are not here", options,
                  context, prove_it);
  command.add_option("program", options->file,
                     "a workload's YAML file, or a StableHLO module as JAX or PyTorch/XLA write it");
  command.add_option("--on", options->on, "which chips: v5e:2x2, v6e:16x16, v5p:2x2x1, h100:8");
  command.add_option("--mesh", options->mesh, "of a workload: its devices by axis, as data=4,model=2");
  command.add_option("--env", options->environment, "lay this environment of the workload over it");
  command.add_option("--set", options->sets, "lay KEY=VALUE over the workload, as train.batch=8; may be repeated")
      .take_all();
  command.add_flag("--time", options->time,
                   "also generate code, which takes minutes: FLOPs, and the compiler's cycles");
  command.add_flag("--predict", options->predict, "without the compiler: what it is predicted to need, of a workload");
  options->timeout = "10min";
  command.add_option("--timeout", options->timeout, "how long the compiler may take: 90s, 1h").capture_default_str();
  command.add_option("--max-memory", options->max_memory, "of this machine, that the compiler may take: 4GiB");
  command
      .add_option("--partitions", options->partitions,
                  "devices that one program is cut for; without: as the module says")
      .check(at_least(1));
  command.add_option("--replicas", options->replicas, "copies of the program; without: as the module says")
      .check(at_least(1));
  command
      .add_option("--xla", options->flags,
                  "a flag of the compiler's, before the catalog's of its name: xla_tpu_scoped_vmem_limit_kib=65536")
      .expected(1)
      .take_all();
  command.add_option("--plugins", options->plugins,
                     "where XLA's plugins are; without: $SYSTOLE_XLA_PLUGINS, or the user's folder");
  command.add_flag("--fresh", options->fresh, "prove it again, though it was proved before");
  command.add_flag("--cache", options->list, "list the proofs that are kept");
  command.add_option("--child", options->child, "compile in this process").hidden();
}

}  // namespace systole::cli
