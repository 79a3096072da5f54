#include "operate/run/named_objects.h"

#include <fnmatch.h>

#include <algorithm>

#include "execute/data/file_patterns.h"
#include "ground/base/files.h"

namespace systole {
namespace {

constexpr std::string_view kWild = "*?[";

std::vector<std::string> names_of(std::string_view path) {
  std::vector<std::string> names;
  for (std::size_t at = 0; at <= path.size();) {
    const std::size_t end = std::min(path.find('/', at), path.size());
    if (end > at) names.emplace_back(path.substr(at, end - at));
    at = end + 1;
  }
  return names;
}

bool matches(const std::vector<std::string>& pattern, std::string_view path) {
  const std::vector<std::string> names = names_of(path);
  return std::ranges::equal(names, pattern, [](const std::string& name, const std::string& wanted) {
    return name == wanted || fnmatch(wanted.c_str(), name.c_str(), FNM_PERIOD) == 0;
  });
}

Result<Place> place_at(const StoreUri& uri, const StoreAccess& access) {
  Place place{.objects = TRY(open_store(uri, access)), .shown = uri.shown(), .scheme = uri.scheme};
  while (place.shown.size() > 1 && place.shown.ends_with('/')) place.shown.pop_back();
  if (!uri.is_local()) return place;
  place.folder = place.shown;
  place.files = TRY(open_posix_store(place.folder));
  return place;
}

Error names_nothing(const std::string& text, bool is_pattern) {
  return error(ErrorKind::not_found, "{} '{}'", is_pattern ? "nothing matches" : "there is no file, object or folder",
               text)
      .hinted("check the name" + brackets_hint(text));
}

Result<NamedObjects> whole_folder(Place place, ListDepth depth) {
  ObjectList all = TRY(place.objects->list("", depth));
  return NamedObjects{.place = std::move(place),
                      .objects = std::move(all.objects),
                      .is_folder = true,
                      .prefixes = std::move(all.prefixes),
                      .left_out = all.left_out,
                      .left_out_name = std::move(all.left_out_name)};
}

}  // namespace

Result<StoreUri> lasting_uri(const std::string& text) {
  StoreUri uri = TRY(read_store_uri(text));
  if (!uri.is_lasting()) return error(ErrorKind::unsupported, "'{}' ends with the process", text).hinted(store_forms());
  if (uri.is_local()) uri.path = TRY(absolute_path(uri.path));
  return uri;
}

Result<Place> open_place(const std::string& text, const StoreAccess& access, bool made) {
  const StoreUri uri = TRY(lasting_uri(text));
  if (uri.is_local() && made) TRY(make_folders(uri.path));
  return place_at(uri, access);
}

Result<NamedObjects> find_objects(const std::string& text, const StoreAccess& access, ListDepth depth) {
  StoreUri uri = TRY(lasting_uri(text));
  const std::vector<std::string> names = names_of(uri.path);
  const bool is_folder_here = uri.is_local() && is_folder(uri.path);
  if (is_folder_here || (!uri.is_local() && names.size() == 1)) {
    return whole_folder(TRY(place_at(uri, access)), depth);
  }
  const auto wild =
      std::ranges::find_if(names.begin() + (uri.is_local() ? 0 : 1), names.end(),
                           [](const std::string& name) { return name.find_first_of(kWild) != name.npos; });
  const bool is_pattern = wild != names.end();
  const auto rest = is_pattern ? wild : names.end() - 1;
  StoreUri above{uri.scheme, (uri.is_local() ? "/" : "") + fmt::format("{}", fmt::join(names.begin(), rest, "/"))};
  if (uri.is_local() && !is_folder(above.path)) return names_nothing(text, is_pattern);
  Place place = TRY(place_at(above, access));
  const std::string below = fmt::format("{}", fmt::join(rest, names.end(), "/"));
  const bool as_folder = uri.path.ends_with('/');
  if (const Result<Bytes> size = as_folder ? Result<Bytes>(names_nothing(text, false)) : place.objects->size(below);
      size.ok()) {
    return NamedObjects{std::move(place), {{below, *size}}};
  } else if (size.error().kind != ErrorKind::not_found) {
    return size.error();
  }
  if (!is_pattern) {
    if (uri.is_local() || TRY(place.objects->list(below + "/", ListDepth::one_level)) == ObjectList())
      return names_nothing(text, false);
    return whole_folder(TRY(place_at(uri, access)), depth);
  }
  const std::vector<std::string> pattern(rest, names.end());
  const std::string head = pattern[0].substr(0, pattern[0].find_first_of(kWild));
  ObjectList found = TRY(place.objects->list(head, pattern.size() == 1 ? ListDepth::one_level : ListDepth::all));
  std::erase_if(found.objects, [&](const ObjectEntry& object) { return !matches(pattern, object.path); });
  if (found.objects.empty()) return names_nothing(text, true);
  return NamedObjects{std::move(place), std::move(found.objects)};
}

}  // namespace systole
