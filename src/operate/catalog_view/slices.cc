// `systole catalog slices [NAME]`: TPU slices, by both of their names.

#include <fmt/ranges.h>

#include "operate/catalog_view/catalog_view.h"

namespace systole {
namespace {

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

}  // namespace

Result<Shown> show_slices(CatalogView& view, const std::string& name, const std::string& asked, std::int64_t max_chips,
                          int width) {
  const std::string accelerator = TRY(asked_accelerator(view, asked));
  const std::span<const TpuSlice> known = TRY(view.tables.slices());
  std::vector<TpuSlice> found;
  if (!name.empty()) {
    found.push_back(TRY(find_tpu_slice(view.catalog, known, name)));
  } else {
    for (const TpuSlice& slice : known)
      if ((accelerator.empty() || slice.accelerator == accelerator) && (max_chips == 0 || slice.chips <= max_chips))
        found.push_back(slice);
  }
  std::string text;
  if (found.empty())
    text = "no slices: " + (accelerator.empty() ? std::string("of so few chips") : accelerator + " has none");
  else
    text = text_of(found, view.today, width) +
           (found.size() == 1 && !found.front().note.empty() ? "note: " + found.front().note + "\n" : std::string());
  Node list = Node::sequence();
  for (const TpuSlice& slice : found) list.push(node_of(slice, view.today));
  return Shown{std::move(text), Node::map({{"today", view.today}, {"slices", std::move(list)}})};
}

}  // namespace systole
