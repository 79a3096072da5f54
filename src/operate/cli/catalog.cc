// `systole catalog`: accelerators, machines, slices, zones and prices, each with source and date.

#include "operate/catalog_view/catalog_view.h"

#include "operate/cli/command.h"

namespace systole::cli {
namespace {

struct CatalogOptions {
  std::string name, kind;
  CatalogFilters filters;
  std::int64_t max_chips = 0;
  std::optional<double> max_price;  // per hour
  bool all = false;
  CompareOptions compare;
};

using Show = Result<Shown> (*)(CatalogView& view, const CatalogOptions& options, int width);

Subcommand add(Subcommand catalog, Context& context, const char* name, const char* help,
               const std::shared_ptr<CatalogOptions>& options, Show show) {
  return add_command(catalog, name, help, context, [options, &context, show] {
    CatalogView view = open_catalog_view(context.clock).value();
    const Shown shown = show(view, *options, context.out.width()).value();
    context.out.prose(shown.text);
    context.out.json(shown.document);
    return ExitCode::done;
  });
}

void add_accelerator_filter(Subcommand command, CatalogFilters& filters) {
  command.add_option("--accelerator", filters.accelerator, "of this one alone: h100, nvidia-l4, v5litepod");
}
void add_machine_filter(Subcommand command, CatalogFilters& filters) {
  command.add_option("--machine", filters.machine, "of these machine types alone: a3-highgpu-8g, 'g2-*'");
}
void add_place_filters(Subcommand command, CatalogFilters& filters) {
  command.add_option("--region", filters.region, "in this region alone: us-central1");
  command.add_option("--zone", filters.zone, "in this zone alone: us-central1-a");
}

void add_accelerators(Subcommand catalog, Context& context) {
  const auto options = std::make_shared<CatalogOptions>();
  const Subcommand command = add(catalog, context, "accelerators", "chips: dense peak of each type, memory, links",
                                 options, [](CatalogView& view, const CatalogOptions& o, int width) {
                                   return show_accelerators(view, o.name, o.kind, width);
                                 });
  command.add_option("name", options->name, "all that is known of one: h100, nvidia-l4, v5litepod");
  command.add_option("--kind", options->kind, "these alone").check(one_of({"gpu", "tpu"}));
}

void add_machines(Subcommand catalog, Context& context) {
  const auto options = std::make_shared<CatalogOptions>();
  const Subcommand command = add(catalog, context, "machines", "machine types, and which accelerators go with which",
                                 options, [](CatalogView& view, const CatalogOptions& o, int width) {
                                   return show_machines(view, o.name, o.filters, width);
                                 });
  command.add_option("name", options->name, "all that is known of one: a3-highgpu-8g");
  add_accelerator_filter(command, options->filters);
  add_machine_filter(command, options->filters);
}

void add_slices(Subcommand catalog, Context& context) {
  const auto options = std::make_shared<CatalogOptions>();
  const Subcommand command = add(catalog, context, "slices", "TPU slices: shapes, names, hosts, rings", options,
                                 [](CatalogView& view, const CatalogOptions& o, int width) {
                                   return show_slices(view, o.name, o.filters.accelerator, o.max_chips, width);
                                 });
  command.add_option("name", options->name, "one of them, by either name: v5p-128, v5p:4x4x4");
  add_accelerator_filter(command, options->filters);
  command.add_option("--max-chips", options->max_chips, "of so many chips at most").check(at_least(1));
}

void add_zones(Subcommand catalog, Context& context) {
  const auto options = std::make_shared<CatalogOptions>();
  const Subcommand command =
      add(catalog, context, "zones", "which accelerator is in which zone", options,
          [](CatalogView& view, const CatalogOptions& o, int width) { return show_zones(view, o.filters, width); });
  add_accelerator_filter(command, options->filters);
  add_machine_filter(command, options->filters);
  add_place_filters(command, options->filters);
}

void add_prices(Subcommand catalog, Context& context) {
  const auto options = std::make_shared<CatalogOptions>();
  const Subcommand command = add(catalog, context, "prices", "dollars by the hour, on each of the terms", options,
                                 [](CatalogView& view, const CatalogOptions& o, int width) {
                                   return show_prices(view, o.filters, o.max_price, o.all, width);
                                 });
  add_accelerator_filter(command, options->filters);
  add_machine_filter(command, options->filters);
  add_place_filters(command, options->filters);
  command.add_option("--max-price", options->max_price, "known, and of so many dollars an hour at most")
      .check(not_negative());
  command.add_flag("--all", options->all, "of regions too where no zone has the hardware");
}

void add_compare(Subcommand catalog, Context& context) {
  const auto options = std::make_shared<CatalogOptions>();
  const Subcommand command =
      add(catalog, context, "compare", "accelerators side by side: one type for all, and what a dollar buys", options,
          [](CatalogView& view, const CatalogOptions& o, int width) {
            return compare_accelerators(view, o.compare, width);
          });
  CompareOptions& compare = options->compare;
  command.add_option("names", compare.names, "two or more: v5p h100").required().expected(2, 4);
  command.add_option("--dtype", compare.dtype, "bf16, f16, tf32, fp8, int8, fp4, int4, f32 or f64")
      .capture_default_str();
  command.add_option("--region", compare.region, "prices of this region alone: us-central1");
  command.add_option("--provisioning", compare.terms, "on which terms")
      .check(one_of({"on_demand", "spot", "flex_start", "calendar", "commitment_1y", "commitment_3y"}))
      .capture_default_str();
}

}  // namespace

void add_catalog(Subcommand app, Context& context) {
  Subcommand catalog = add_group(app, "catalog", "accelerators, machines, zones and prices, with source and date");
  add_accelerators(catalog, context);
  add_machines(catalog, context);
  add_slices(catalog, context);
  add_zones(catalog, context);
  add_prices(catalog, context);
  add_compare(catalog, context);
}

}  // namespace systole::cli
