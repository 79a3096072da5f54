#include "ground/net/http_response.h"

#include "ground/base/document.h"
#include "ground/base/utf8.h"

namespace systole {
namespace {

using Reason = std::pair<int, std::string_view>;
constexpr Reason kReasons[] = {{200, "OK"},
                               {201, "Created"},
                               {202, "Accepted"},
                               {204, "No Content"},
                               {304, "Not Modified"},
                               {400, "Bad Request"},
                               {401, "Unauthorized"},
                               {403, "Forbidden"},
                               {404, "Not Found"},
                               {405, "Method Not Allowed"},
                               {408, "Request Timeout"},
                               {409, "Conflict"},
                               {411, "Length Required"},
                               {413, "Content Too Large"},
                               {414, "URI Too Long"},
                               {415, "Unsupported Media Type"},
                               {422, "Unprocessable Content"},
                               {429, "Too Many Requests"},
                               {431, "Request Header Fields Too Large"},
                               {500, "Internal Server Error"},
                               {501, "Not Implemented"},
                               {503, "Service Unavailable"},
                               {505, "HTTP Version Not Supported"}};

std::string_view reason_of(int status) {
  const auto* found = std::ranges::find(kReasons, status, &Reason::first);
  return found == std::end(kReasons) ? "" : found->second;
}

// "Sun, 06 Nov 1994 08:49:37 GMT" (RFC 9110, 5.6.7), in any locale.
std::string http_date(std::time_t time) {
  constexpr const char* kDays[] = {"Sun", "Mon", "Tue", "Wed", "Thu", "Fri", "Sat"};
  constexpr const char* kMonths[] = {"Jan", "Feb", "Mar", "Apr", "May", "Jun",
                                     "Jul", "Aug", "Sep", "Oct", "Nov", "Dec"};
  std::tm t{};
  CHECK(::gmtime_r(&time, &t) != nullptr, "no date of {} s", time);
  return fmt::format("{}, {:02} {} {} {:02}:{:02}:{:02} GMT", kDays[t.tm_wday], t.tm_mday, kMonths[t.tm_mon],
                     t.tm_year + 1900, t.tm_hour, t.tm_min, t.tm_sec);
}

const char* openai_type(int status) {
  if (status == 401) return "authentication_error";
  if (status == 403) return "permission_error";
  if (status == 429) return "rate_limit_error";
  return status >= 500 ? "server_error" : "invalid_request_error";
}

}  // namespace

HttpResponse openai_error(const HttpFault& fault) {
  const Node code = fault.status == 401 ? Node("invalid_api_key") : Node();
  const Node body = Node::map({{"error", Node::map({{"message", replace_invalid_utf8(fault.message)},
                                                    {"type", openai_type(fault.status)},
                                                    {"param", Node()},
                                                    {"code", code}})}});
  return {.status = fault.status, .body = to_json(body) + "\n"};
}

std::string head_text(const HttpResponse& response, std::string_view id, std::string_view framing, std::time_t now) {
  std::string text = fmt::format("HTTP/1.1 {} {}\r\nDate: {}\r\nServer: systole\r\n", response.status,
                                 reason_of(response.status), http_date(now));
  if (!id.empty()) text += fmt::format("X-Request-Id: {}\r\n", id);
  if (!response.type.empty()) text += fmt::format("Content-Type: {}\r\n", response.type);
  for (const auto& [name, value] : response.headers) text += fmt::format("{}: {}\r\n", name, value);
  return text + std::string(framing) + "\r\n";
}

}  // namespace systole
