// `systole catalog slices [NAME]`: TPU slices, by both of their names.

#include <fmt/ranges.h>

#include "operate/cli/catalog_view.h"

namespace systole::cli {
namespace {

struct SlicesOptions {
  std::string name;
  CatalogFilters filters;
  std::int64_t max_chips = 0;
};

// "xyz" for the axes with wrap-around links.
std::string closes_text(const TpuSlice& slice) {
  std::string text;
  for (std::size_t i = 0; i < slice.closes.size(); ++i)
    if (slice.closes[i]) text += "xyz"[i];
  return text.empty() ? "-" : text;
}

Node node_of(const TpuSlice& slice, const std::string& today) {
  Node shape = Node::sequence(), closes = Node::sequence();
  for (std::size_t i = 0; i < slice.shape.size(); ++i) {
    shape.push(slice.shape[i]);
    closes.push(static_cast<bool>(slice.closes[i]));
  }
  Node node = Node::map({{"name", slice.name},
                         {"by_shape", slice.by_shape()},
                         {"accelerator", slice.accelerator},
                         {"name_counts", slice.counts_cores ? "cores" : "chips"},
                         {"shape", std::move(shape)},
                         {"closes", std::move(closes)},
                         {"chips", slice.chips},
                         {"cores", slice.cores},
                         {"devices", slice.devices},
                         {"hosts", slice.hosts},
                         {"chips_per_host", slice.chips_per_host},
                         {"machine", slice.machine},
                         {"other_hosts", slice.other_hosts},
                         {"gke_label", slice.gke_label},
                         {"twists", slice.twists},
                         {"usual_shape", slice.usual},
                         {"in_cloud_tpu_api", slice.in_api},
                         {"documented", slice.documented},
                         {"note", slice.note}});
  set_dated(node, slice.dated.source, slice.dated.date, today, kFactIsOldAfter);
  return node;
}

std::string text_of(const std::vector<TpuSlice>& slices, const std::string& today, int width) {
  SourceNotes notes(today, true);
  std::vector<std::vector<std::string>> rows;
  for (const TpuSlice& slice : slices)
    rows.push_back({slice.name, slice.by_shape(), with_commas(slice.chips), with_commas(slice.cores),
                    with_commas(slice.devices), with_commas(slice.hosts), closes_text(slice),
                    slice.machine.empty() ? "-" : slice.machine, notes.fact(slice.dated)});
  return table({"slice", "by shape", "chips>", "cores>", "devices>", "hosts>", "rings", "host", "source"}, rows,
               width) +
         "\nrings: axes whose ends are joined; names count chips of v5litepod and v6e, cores of all others\n" +
         notes.text(width);
}

ExitCode slices(const SlicesOptions& options, Context& context) {
  CatalogView view = open_catalog_view(context.clock).value();
  const std::string accelerator = asked_accelerator(view, options.filters.accelerator).value();
  const std::span<const TpuSlice> known = view.tables.slices().value();
  std::vector<TpuSlice> found;
  if (!options.name.empty()) {
    found.push_back(find_tpu_slice(view.catalog, known, options.name).value());
  } else {
    for (const TpuSlice& slice : known)
      if ((accelerator.empty() || slice.accelerator == accelerator) &&
          (options.max_chips == 0 || slice.chips <= options.max_chips))
        found.push_back(slice);
  }
  if (found.empty())
    context.out.data("no slices: " +
                     (accelerator.empty() ? std::string("of so few chips") : accelerator + " has none"));
  else
    context.out.prose(
        text_of(found, view.today, context.out.width()) +
        (found.size() == 1 && !found.front().note.empty() ? "note: " + found.front().note + "\n" : std::string()));
  Node list = Node::sequence();
  for (const TpuSlice& slice : found) list.push(node_of(slice, view.today));
  context.out.json(Node::map({{"today", view.today}, {"slices", std::move(list)}}));
  return ExitCode::done;
}

}  // namespace

void add_catalog_slices(Subcommand catalog, Context& context) {
  auto options = std::make_shared<SlicesOptions>();
  Subcommand command =
      add_command(catalog, "slices", "TPU slices: shapes, names, hosts, rings", options, context, slices);
  command.add_option("name", options->name, "one of them, by either name: v5p-128, v5p:4x4x4");
  add_accelerator_filter(command, options->filters);
  command.add_option("--max-chips", options->max_chips, "of so many chips at most").check(at_least(1));
}

}  // namespace systole::cli
