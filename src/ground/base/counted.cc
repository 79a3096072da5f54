#include "ground/base/counted.h"

#include "ground/base/units.h"

namespace systole {
namespace {

bool is_vowel(char c) { return std::string_view("aeiou").find(c) != std::string_view::npos; }

std::string plural(std::string_view noun) {
  if (noun.ends_with("axis")) return std::string(noun.substr(0, noun.size() - 2)) + "es";
  for (const std::string_view hissing : {"s", "x", "ch", "sh"})
    if (noun.ends_with(hissing)) return std::string(noun) + "es";
  if (noun.ends_with('y') && noun.size() > 1 && !is_vowel(noun[noun.size() - 2]))
    return std::string(noun.substr(0, noun.size() - 1)) + "ies";
  return std::string(noun) + "s";
}

}  // namespace

std::string noun_for(std::int64_t count, std::string_view noun) {
  return count == 1 ? std::string(noun) : plural(noun);
}

std::string counted_text(std::int64_t count, std::string_view noun) {
  return with_commas(count) + " " + noun_for(count, noun);
}

}  // namespace systole
