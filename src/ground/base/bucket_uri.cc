#include "ground/base/bucket_uri.h"

namespace systole {

bool is_bucket_uri(std::string_view text) {
  const std::size_t end = text.find("://");
  return end != text.npos && text.substr(0, end) != "file";
}

}  // namespace systole
