// `systole data push FROM... TO`, `stage FROM TO`, `sync FROM TO`, `ls PLACE`: objects between folders and buckets.

#include "operate/cli/data_move.h"

#include <map>
#include <mutex>

#include "ground/base/counted.h"
#include "ground/base/files.h"
#include "ground/base/shell_quoted.h"
#include "ground/process/signal_watch.h"
#include "operate/cli/data_move_price.h"
#include "operate/run/catalog_files.h"
#include "operate/run/named_objects.h"
#include "operate/run/store_access.h"

namespace systole::cli {
namespace {

struct MoveOptions {
  std::vector<std::string> places;  // the last is the destination
  bool remove_others = false, dry_run = false;
  int jobs = 8;
};

// The requests of each vendor: sources are read, the destination is written.
std::vector<MoveRequests> requests_of(const TransferPlan& plan, const Place& to, const StoreAccess& access) {
  std::vector<MoveRequests> all;
  std::map<const Place*, std::string> vendors;  // to know it may take a file of credentials
  const auto of = [&](const Place& place) -> MoveRequests& {
    const auto [at, is_new] = vendors.try_emplace(&place);
    if (is_new) at->second = vendor_of(place, access);
    const std::string& vendor = at->second;
    for (MoveRequests& one : all)
      if (one.vendor == vendor) return one;
    return all.emplace_back(MoveRequests{vendor});
  };
  for (const TransferItem& item : plan.send) {
    if (item.from->is_local()) continue;
    MoveRequests& source = of(*item.from);
    source.reads += reads_of_object(item.size);
    source.leave += item.size;
  }
  if (plan.writes > 0) of(to).writes += plan.writes;
  return all;
}

MovePrice price_of(const TransferPlan& plan, const Place& to, const StoreAccess& access, Context& context) {
  const std::vector<MoveRequests> asked = requests_of(plan, to, access);
  const Result<CatalogView> view = open_catalog_view(context.clock);
  if (!view.ok()) return price_of_requests(asked, {});
  CatalogTables tables = view->tables;
  const auto tiers = tables.storage();
  return price_of_requests(asked, tiers.ok() ? *tiers : std::span<const StorageTier>());
}

// What is told before anything is sent.
std::string told(const TransferPlan& plan, const MovePrice& price, const Place& to) {
  std::string text =
      fmt::format("{}: {}, {} to send", to.shown, counted(plan.send.size(), "object"), to_string(plan.bytes));
  if (!plan.kept.empty())
    text += fmt::format("; {} there already", with_commas(static_cast<std::int64_t>(plan.kept.size())));
  if (!plan.remove.empty())
    text += fmt::format("; {} to remove", with_commas(static_cast<std::int64_t>(plan.remove.size())));
  return text + price_text(price, plan.reads, plan.writes);
}

// By the URI of the destination: to open a folder is to make it.
void refuse_itself(const NamedObjects& from, const StoreUri& to, bool remove_others) {
  const auto below = [](const std::string& a, const std::string& b) {
    return a.starts_with(b.ends_with('/') ? b : b + "/");
  };
  std::string shown = to.shown();
  while (shown.size() > 1 && shown.ends_with('/')) shown.pop_back();
  const std::string source = from.place.is_local() ? path_without_links(from.place.folder).value() : from.place.shown;
  const std::string target = to.is_local() ? path_without_links(shown).value() : shown;
  const bool same = source == target;
  if (!same && !(from.is_folder && below(target, source)) && !(remove_others && below(source, target))) return;
  fail(error(ErrorKind::invalid, "'{}' and '{}' are {}", from.place.shown, shown,
             same ? "the same place" : "within each other")
           .hinted("name another destination"));
}

// An absent folder is made only when something is sent.
Place destination(const StoreUri& uri, const MoveOptions& options, const StoreAccess& access) {
  if (!uri.is_local() || !options.dry_run || is_folder(uri.path))
    return open_place(options.places.back(), access, !options.dry_run).value();
  return Place{.objects = make_memory_objects(), .shown = uri.path, .scheme = "file", .folder = uri.path};
}

std::vector<NamedObjects> sources(const MoveOptions& options, const StoreAccess& access) {
  std::vector<NamedObjects> from;
  for (std::size_t i = 0; i + 1 < options.places.size(); ++i) {
    from.push_back(find_objects(options.places[i], access).value());
    if (options.remove_others && !from.back().is_folder) {  // what a pattern leaves out would be removed
      fail(error(ErrorKind::invalid, "--delete makes TO like a folder, and '{}' is none", options.places[i])
               .hinted("leave --delete out, or name the folder"));
    }
    if (const NamedObjects& found = from.back(); found.left_out > 0) {
      fail(error(ErrorKind::invalid, "{} of '{}' cannot be a file, as '{}/{}'", counted(found.left_out, "object"),
                 options.places[i], found.place.shown, found.left_out_name)
               .hinted("rename them, or name a pattern that leaves them out"));
    }
    if (from.back().objects.empty()) {
      fail(error(ErrorKind::invalid, "'{}' holds nothing", options.places[i])
               .hinted("name a folder with files, or a bucket's folder with objects"));
    }
  }
  return from;
}

constexpr const char* kAgain = "the same command goes on: what is there whole is not sent again";

std::function<void(std::int64_t, Bytes)> progress_of(const TransferPlan& plan, const SignalWatch& signals,
                                                     Context& context) {
  const Seconds began = context.clock.now();
  return [&plan, &signals, &context, began](std::int64_t objects, Bytes bytes) {
    if (signals.stop_requested()) {
      fail(error(ErrorKind::interrupted, "stopped with {} of {} sent, {} of {}", with_commas(objects),
                 counted(plan.send.size(), "object"), to_string(bytes), to_string(plan.bytes))
               .hinted(kAgain));
    }
    const Seconds took = context.clock.now() - began;
    const std::string rate = took.count() > 0 ? "  " + to_string(bytes / took) : "";
    context.out.progress(fmt::format("{} of {}, {} of {}{}", with_commas(objects), counted(plan.send.size(), "object"),
                                     to_string(bytes), to_string(plan.bytes), rate));
  };
}

void print_plan(const TransferPlan& plan, const Place& to, Context& context) {
  for (const TransferItem& item : plan.send)
    context.out.data(fmt::format("send {} to {}  {}", item.from->of(item.path), to.of(item.to), to_string(item.size)));
  for (const std::string& path : plan.remove) context.out.data(fmt::format("remove {}", to.of(path)));
}

Node node_of(const TransferPlan& plan, const Place& to, const MovePrice& price, const Transferred& done, bool dry_run) {
  Node unchecked = Node::sequence();
  for (const std::string& name : done.unchecked) unchecked.push(name);
  return Node::map({{"to", to.shown},
                    {"dry_run", dry_run},
                    {"objects_to_send", plan.send.size()},
                    {"bytes_to_send", plan.bytes.count()},
                    {"objects_kept", plan.kept.size()},
                    {"objects_to_remove", plan.remove.size()},
                    {"bucket_reads", plan.reads},
                    {"bucket_writes", plan.writes},
                    {"requests_usd", price.requests ? Node(price.requests->count()) : Node()},
                    {"egress_usd", price.leaving.empty() ? Node(0.0) : Node()},
                    {"egress_to_internet_usd", price.to_internet() ? Node(price.to_internet()->count()) : Node()},
                    {"objects_sent", done.sent},
                    {"objects_removed", done.removed},
                    {"unchecked", std::move(unchecked)}});
}

ExitCode move(const MoveOptions& options, bool manifest, Context& context) {
  if (options.places.size() < 2)
    fail(error(ErrorKind::invalid, "two places are needed: FROM and TO").hinted("systole data push FROM TO"));
  const StoreAccess access = store_access();
  const std::vector<NamedObjects> from = sources(options, access);
  const StoreUri uri = lasting_uri(options.places.back()).value();
  for (const NamedObjects& source : from) refuse_itself(source, uri, options.remove_others);
  const Place to = destination(uri, options, access);
  std::vector<TransferItem> items;
  for (const NamedObjects& source : from) {
    for (const ObjectEntry& object : source.objects)
      items.push_back({&source.place, object.path, object.path, object.size});
  }
  const std::unique_ptr<FileLock> lock = options.dry_run ? nullptr : lock_destination(to).value();
  TransferOptions how{
      .remove_others = options.remove_others, .manifest = manifest, .from = from[0].place.shown, .jobs = options.jobs};
  const TransferPlan plan = plan_transfer(std::move(items), to, how).value();
  const MovePrice price = price_of(plan, to, access, context);
  context.out.message(told(plan, price, to));
  if (options.dry_run) {
    print_plan(plan, to, context);
    context.out.json(node_of(plan, to, price, {}, true));
    return ExitCode::done;
  }
  const Seconds began = context.clock.now();
  const SignalWatch signals;
  how.progress = progress_of(plan, signals, context);
  Result<Transferred> moved = transfer(plan, to, how);
  context.out.end_progress();
  if (!moved.ok()) {
    Error why = std::move(moved).error();
    if (why.hint.empty()) why.hint = kAgain;
    fail(std::move(why));
  }
  if (!moved->unchecked.empty()) {
    context.out.warning(fmt::format("unchecked, for their store states no checksum: {}{}",
                                    counted(moved->unchecked.size(), "object"), ", as " + moved->unchecked[0]));
  }
  context.out.data(fmt::format("{}: {}, {} sent{} in {}", to.shown, counted(moved->sent, "object"),
                               to_string(moved->bytes),
                               moved->removed > 0 ? fmt::format(", {} removed", with_commas(moved->removed)) : "",
                               to_string(context.clock.now() - began)));
  context.out.json(node_of(plan, to, price, *moved, false));
  return ExitCode::done;
}

ExitCode data_push(const MoveOptions& options, Context& context) { return move(options, false, context); }
ExitCode data_stage(const MoveOptions& options, Context& context) { return move(options, true, context); }
ExitCode data_sync(const MoveOptions& options, Context& context) { return move(options, false, context); }

struct LsOptions {
  std::string place;
  bool all = false;
};

ExitCode data_ls(const LsOptions& options, Context& context) {
  const ListDepth depth = options.all ? ListDepth::all : ListDepth::one_level;
  const NamedObjects found = find_objects(options.place, store_access(), depth).value();
  Bytes sum;
  Node objects = Node::sequence(), folders = Node::sequence();
  for (const std::string& folder : found.prefixes) {
    context.out.data(fmt::format("{:>16}  {}", "", folder));
    folders.push(folder);
  }
  for (const ObjectEntry& object : found.objects) {
    context.out.data(fmt::format("{:>16}  {}", with_commas(object.size.count()), object.path));
    objects.push(Node::map({{"name", object.path}, {"bytes", object.size.count()}}));
    sum += object.size;
  }
  context.out.message(
      fmt::format("{}: {}, {}", found.place.shown, counted(found.objects.size(), "object"), to_string(sum)));
  context.out.json(Node::map({{"place", found.place.shown}, {"folders", folders}, {"objects", objects}}));
  return ExitCode::done;
}

Subcommand add_move(Subcommand group, Context& context, const char* name, const char* help,
                    ExitCode (*run)(const MoveOptions&, Context&), const std::shared_ptr<MoveOptions>& options) {
  Subcommand command = add_command(group, name, help, options, context, run);
  command.add_flag("--dry-run", options->dry_run, "only say what would be sent and removed");
  command.add_option("--jobs", options->jobs, "objects at a time").check(at_least(1)).capture_default_str();
  return command;
}

}  // namespace

void add_data_move(Subcommand group, Context& context) {
  const char* const places = "FROM and TO: a folder, gs://BUCKET/FOLDER or s3://BUCKET/FOLDER";
  auto push = std::make_shared<MoveOptions>();
  add_move(group, context, "push", "files, patterns or folders into a folder or bucket", data_push, push)
      .add_option("places", push->places,
                  "FROM... and TO: files, patterns or folders, and a folder; here, in gs:// or s3://")
      .required()
      .expected(2, 1 << 20);
  auto stage = std::make_shared<MoveOptions>();
  add_move(group, context, "stage", "the same of one folder or pattern, with a manifest written last", data_stage,
           stage)
      .add_option("places", stage->places, places)
      .required()
      .expected(2);
  auto sync = std::make_shared<MoveOptions>();
  const Subcommand command = add_move(group, context, "sync", "make a folder or bucket like another", data_sync, sync);
  command.add_option("places", sync->places, places).required().expected(2);
  command.add_flag("--delete", sync->remove_others, "remove what is below TO and not in FROM");
  auto ls = std::make_shared<LsOptions>();
  const Subcommand listing =
      add_command(group, "ls", "what a folder or bucket holds, with sizes", ls, context, data_ls);
  listing.add_option("place", ls->place, "a folder, a pattern, or gs:// or s3://").required();
  listing.add_flag("--all", ls->all, "all below it, not only one level");
}

bool is_staged_place(const std::string& text) {
  if (is_bucket_uri(text)) return true;
  const Result<StoreUri> uri = lasting_uri(text);
  return uri.ok() && is_folder(uri->path);
}

ExitCode verify_staged(const std::string& text, Context& context) {
  const Place place = open_place(text, store_access()).value();
  const FolderManifest manifest = read_manifest(place).value();
  const VerifiedFolder verified = verify_folder(place, manifest).value();
  Node damaged = Node::sequence();
  for (const Error& why : verified.damaged) {
    context.out.data(fmt::format("damaged: {}", to_string(why)));
    damaged.push(error_node(why));
  }
  if (verified.damaged.empty()) {
    context.out.data(fmt::format("{}: OK, {}: {} read, {} by the checksum that the store states", place.shown,
                                 counted(manifest.rows.size(), "object"), to_string(verified.read),
                                 with_commas(verified.stated)));
  }
  context.out.json(Node::map({{"place", place.shown},
                              {"objects", manifest.rows.size()},
                              {"bytes_read", verified.read.count()},
                              {"stated", verified.stated},
                              {"damaged", damaged}}));
  if (!verified.damaged.empty()) {
    context.out.message(
        fmt::format("next: systole data stage {} {} sends those again", shell_word(manifest.from), shell_word(text)));
  }
  return verified.damaged.empty() ? ExitCode::done : ExitCode::no;
}

}  // namespace systole::cli
