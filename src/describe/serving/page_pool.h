#pragma once
// The pages of a cache of keys and values: which are free, which sequences use each, and which can be used again because
// their tokens are known (Kwon et al., SOSP 2023; the prefix cache is that of vLLM). Pages are numbers; the pool knows
// neither memory nor tokens.
//
//   PagePool pool(100);
//   std::vector<std::int32_t> pages = pool.match(hashes);        // a beginning that was computed before, if there is one
//   if (!pool.append(4, pages)) ...                              // there are no 4 free pages
//   pool.publish(pages[0], hashes[0]);                           // its tokens are computed: others may use it
//   pool.release(pages);                                         // the sequence ended
//
// A hash names the tokens of a page and all tokens before them. Equal hashes are taken for equal tokens, whoever sent them,
// so use a cryptographic hash. A page that nobody uses keeps its tokens until it is needed; the one that was used longest ago goes
// first.

#include <cstdint>
#include <list>
#include <map>
#include <span>
#include <string>
#include <vector>

namespace systole {

using PageHash = std::string;  // any bytes

class PagePool {
 public:
  // REQUIRES: pages ≥ 1.
  explicit PagePool(std::int64_t pages);

  // The pages of the longest beginning of `hashes` that has been published. Each is used by one more sequence.
  std::vector<std::int32_t> match(std::span<const PageHash> hashes);
  // Appends `count` pages that nobody uses; false: there are fewer, and nothing changes.
  bool append(std::int64_t count, std::vector<std::int32_t>& pages);
  // The pages are used by one sequence less. A published page keeps its tokens.
  void release(std::span<const std::int32_t> pages);
  // The tokens of a page are computed and will not change. Another page with this hash stays the one that `match` gives.
  // REQUIRES: somebody uses the page, and it is not published.
  void publish(std::int32_t page, const PageHash& hash);
  // No page is found any more: what was computed of their tokens is void. REQUIRES: nobody uses a page.
  void forget();

  std::int64_t size() const { return static_cast<std::int64_t>(pages_.size()); }
  // Pages that `append` could give.
  std::int64_t available() const { return static_cast<std::int64_t>(unused_.size()); }

 private:
  struct Page {
    std::int64_t users = 0;
    PageHash hash = {};                            // empty: not published
    std::list<std::int32_t>::iterator place = {};  // in unused_, if there are no users
  };
  Page& at(std::int32_t page) { return pages_[static_cast<std::size_t>(page)]; }
  void use(std::int32_t page);

  std::vector<Page> pages_;
  std::list<std::int32_t> unused_;  // the next to give first: without tokens, then the one used longest ago
  std::map<PageHash, std::int32_t> published_;
};

}  // namespace systole
