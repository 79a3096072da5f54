#include "operate/init/gpu_machine.h"

#include "ground/catalog/offer.h"

namespace systole {

Result<GpuMachine> cheapest_gpu_machine(CatalogTables& tables, const Catalog& catalog) {
  OfferFilter filter{.max_chips = 1, .provisioning = {Provisioning::on_demand}};
  for (const auto& [name, entry] : catalog.entries())
    if (entry.kind == "gpu") filter.accelerators.push_back(name);
  std::vector<Offer> offers = TRY(find_offers(tables, catalog, filter));
  std::erase_if(offers, [](const Offer& offer) {
    return offer.accelerators != 1 || offer.slice || !offer.attached.empty() || offer.zone.empty() ||
           !offer.price.known() || !is_date(offer.price.dated.date);
  });
  sort_by_price(offers);
  if (offers.empty())
    return error(ErrorKind::not_found, "the catalog has no price for a machine with one GPU")
        .hinted("systole catalog prices --help says how prices of your own are given");
  const Offer& first = offers.front();
  return GpuMachine{first.machine, first.accelerator, first.zone, to_string(*first.price.amount),
                    first.price.dated.date};
}

}  // namespace systole
