#include "describe/serving/page_pool.h"

#include "ground/base/error.h"

namespace systole {

PagePool::PagePool(std::int64_t pages) : pages_(static_cast<std::size_t>(pages)) {
  CHECK(pages >= 1, "a pool of {} pages", pages);
  for (std::int32_t page = 0; page < pages; ++page) at(page).place = unused_.insert(unused_.end(), page);
}

void PagePool::use(std::int32_t page) {
  if (at(page).users++ == 0) unused_.erase(at(page).place);
}

std::vector<std::int32_t> PagePool::match(std::span<const PageHash> hashes) {
  std::vector<std::int32_t> pages;
  for (const PageHash& hash : hashes) {
    const auto found = published_.find(hash);
    if (found == published_.end()) break;
    use(found->second);
    pages.push_back(found->second);
  }
  return pages;
}

bool PagePool::append(std::int64_t count, std::vector<std::int32_t>& pages) {
  if (count > available()) return false;
  for (std::int64_t i = 0; i < count; ++i) {
    const std::int32_t page = unused_.front();
    if (!at(page).hash.empty()) {
      published_.erase(at(page).hash);
      at(page).hash.clear();
    }
    use(page);
    pages.push_back(page);
  }
  return true;
}

// The last pages of a sequence are the least likely to be asked for again, so they are to go before its first.
void PagePool::release(std::span<const std::int32_t> pages) {
  for (std::size_t i = pages.size(); i-- > 0;) {
    Page& page = at(pages[i]);
    CHECK(page.users > 0, "page {} is released and nobody uses it", pages[i]);
    if (--page.users > 0) continue;
    page.place = unused_.insert(page.hash.empty() ? unused_.begin() : unused_.end(), pages[i]);
  }
}

void PagePool::publish(std::int32_t page, const PageHash& hash) {
  CHECK(at(page).users > 0 && at(page).hash.empty() && !hash.empty(), "page {} cannot be published", page);
  if (published_.try_emplace(hash, page).second) at(page).hash = hash;
}

void PagePool::forget() {
  CHECK(available() == size(), "{} of {} pages are in use", size() - available(), size());
  for (const auto& [hash, page] : published_) at(page).hash.clear();
  published_.clear();
}

}  // namespace systole
