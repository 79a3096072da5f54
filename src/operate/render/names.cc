#include "operate/render/names.h"

#include <algorithm>

namespace systole {
namespace {

bool is_lower(char c) { return (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9'); }
bool is_alnum(char c) { return is_lower(c) || (c >= 'A' && c <= 'Z'); }

}  // namespace

Result<std::string> dns_label(std::string_view text, std::size_t most, std::string_view takes) {
  std::string name;
  for (char c : text) {
    if (c >= 'A' && c <= 'Z') c = static_cast<char>(c - 'A' + 'a');
    if (is_lower(c)) {
      name += c;
    } else if (!name.empty() && name.back() != '-') {
      name += '-';
    }
  }
  while (!name.empty() && name.back() == '-') name.pop_back();
  if (!name.empty() && name[0] >= '0' && name[0] <= '9') name = "w" + name;
  if (name.empty())
    return key_error(ErrorKind::invalid, "name", "'{}' has no letter that {} can be called by", text, takes)
        .hinted("name: some of a-z, 0-9 and '-'");
  if (name.size() > most)
    return key_error(ErrorKind::invalid, "name", "'{}' has {} characters; {} takes {} here", name, name.size(), takes,
                     most)
        .hinted("a shorter name");
  return name;
}

bool is_host_name(std::string_view text) {
  return !text.empty() && text.size() <= 253 && is_lower(text.front()) && is_lower(text.back()) &&
         std::ranges::all_of(text, [](char c) { return is_lower(c) || c == '-' || c == '.'; });
}

bool is_label_value(std::string_view text) {
  if (text.empty()) return true;
  return text.size() <= 63 && is_alnum(text.front()) && is_alnum(text.back()) &&
         std::ranges::all_of(text, [](char c) { return is_alnum(c) || c == '-' || c == '_' || c == '.'; });
}

bool is_label_name(std::string_view text) {
  if (const std::size_t slash = text.find('/'); slash != text.npos) {
    if (!is_host_name(text.substr(0, slash))) return false;
    text = text.substr(slash + 1);
  }
  return !text.empty() && is_label_value(text);
}

Status check_image(std::string_view image) {
  const auto wrong = [&](const char* why, const char* hint) {
    return key_error(ErrorKind::invalid, "image", "'{}' {}", image, why).hinted(hint);
  };
  const char* kHow = "image: REGISTRY/NAME@sha256:DIGEST; `docker push` and `skopeo inspect` print the digest";
  const bool printable = std::ranges::all_of(
      image, [](char c) { return is_alnum(c) || std::string_view("._/:@-").find(c) != std::string_view::npos; });
  if (image.empty() || !printable || !is_alnum(image[0]) || image.size() > 500) return wrong("is no image", kHow);
  const std::size_t at = image.find('@');
  if (at != image.npos) {
    const std::string_view digest = image.substr(at + 1);
    constexpr std::string_view kSha = "sha256:";
    const bool whole = digest.starts_with(kSha) && digest.size() == kSha.size() + 64 &&
                       digest.substr(kSha.size()).find_first_not_of("0123456789abcdef") == digest.npos;
    return whole ? Status() : wrong("has no digest of SHA-256 behind '@'", kHow);
  }
  const std::size_t slash = image.rfind('/'), colon = image.rfind(':');
  if (colon == image.npos || (slash != image.npos && colon < slash)) return wrong("has neither digest nor tag", kHow);
  if (image.substr(colon) == ":latest") return wrong("is another image each day", kHow);
  return {};
}

bool is_gcp_name(std::string_view text, std::size_t most) {
  return !text.empty() && text.size() <= most && text.front() >= 'a' && text.front() <= 'z' && text.back() != '-' &&
         std::ranges::all_of(text, [](char c) { return is_lower(c) || c == '-'; });
}

bool is_gcp_project(std::string_view text) { return text.size() >= 6 && is_gcp_name(text, 30); }

bool is_bucket(std::string_view text) {
  return text.size() >= 3 && text.size() <= 63 && is_lower(text.front()) && is_lower(text.back()) &&
         !text.starts_with("goog") && text.find("google") == text.npos && text.find("..") == text.npos &&
         std::ranges::all_of(text, [](char c) { return is_lower(c) || c == '-' || c == '_' || c == '.'; });
}

bool is_gcp_region(std::string_view text) {  // northamerica-northeast1
  const std::size_t dash = text.find('-');
  return is_gcp_name(text) && dash != text.npos && text.find('-', dash + 1) == text.npos && text.back() >= '0' &&
         text.back() <= '9';
}

bool is_gcp_zone(std::string_view text) {  // us-central1-a, us-south1-ai1b
  const std::string_view region = gcp_region_of(text);
  if (!is_gcp_region(region)) return false;
  const std::string_view letters = text.substr(region.size() + 1);
  return !letters.empty() && letters[0] >= 'a' && letters[0] <= 'z' && std::ranges::all_of(letters, is_lower);
}

std::string_view gcp_region_of(std::string_view zone) {
  const std::size_t dash = zone.rfind('-');
  return zone.substr(0, dash == zone.npos ? 0 : dash);
}

std::string_view gcp_project_of(std::string_view account) {
  const std::string_view domain = account.substr(account.find('@') + 1);
  return domain.substr(0, domain.find(".iam.gserviceaccount.com"));
}

bool is_gcp_label(std::string_view key, std::string_view value) {
  const auto plain = [](std::string_view text) {
    return text.size() <= 63 && std::ranges::all_of(text, [](char c) { return is_lower(c) || c == '-' || c == '_'; });
  };
  return !key.empty() && key[0] >= 'a' && key[0] <= 'z' && plain(key) && plain(value);
}

}  // namespace systole
