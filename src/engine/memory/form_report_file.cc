#include "engine/memory/form_report_file.h"

#include <algorithm>
#include <cerrno>
#include <cmath>
#include <cstring>
#include <fstream>
#include <nlohmann/json.hpp>

#include "core/text_hash.h"
#include "sys/whole_file.h"

namespace memdecay {
namespace {

/// Rises whenever the text, the passes or the meaning of a number change.
constexpr int kVersion = 1;
constexpr std::uint64_t kBlocks = 64;
constexpr std::uint64_t kBlockBytes = 4096;

std::filesystem::path report_path(const std::filesystem::path& folder,
                                  const std::string& fingerprint) {
  return folder / (fingerprint + ".forms.json");
}

/// One finite number from 0 on for each form.
template <typename Number>
bool read_numbers(const nlohmann::json& json, const char* name,
                  std::array<Number, kPageFormCount>& out) {
  const auto found = json.find(name);
  if (found == json.end() || !found->is_array() || found->size() != out.size()) return false;
  for (std::size_t i = 0; i < out.size(); ++i) {
    const nlohmann::json& one = (*found)[i];
    if (!one.is_number()) return false;
    out[i] = one.get<Number>();
    if (!std::isfinite(out[i]) || out[i] < 0) return false;
  }
  return true;
}

}  // namespace

Result<std::string> file_fingerprint(const std::string& path) {
  std::ifstream stream(path, std::ios::binary | std::ios::ate);
  if (!stream)
    return make_status(StatusCode::kNotFound, "\"{}\" cannot be read: {}", path,
                       std::strerror(errno));
  const auto size = static_cast<std::uint64_t>(stream.tellg());
  std::uint64_t hash = kEmptyTextHash;
  hash = text_hash_of_more(hash, {reinterpret_cast<const char*>(&size), sizeof size});
  std::array<char, kBlockBytes> block;
  const std::uint64_t last = size - std::min(size, kBlockBytes);
  for (std::uint64_t i = 0; i < kBlocks; ++i) {
    stream.seekg(static_cast<std::streamoff>(last / (kBlocks - 1) * i +
                                             last % (kBlocks - 1) * i / (kBlocks - 1)));
    stream.read(block.data(), static_cast<std::streamsize>(std::min(size, kBlockBytes)));
    if (!stream) return make_status(StatusCode::kIoError, "\"{}\" cannot be read", path);
    hash = text_hash_of_more(hash, {block.data(), static_cast<std::size_t>(stream.gcount())});
  }
  return fmt::format("{:016x}", hash);
}

std::optional<FormReport> read_form_report(const std::filesystem::path& folder,
                                           const std::string& fingerprint) {
  const Result<std::string> text = read_file(report_path(folder, fingerprint));
  if (!text.ok()) return std::nullopt;
  const auto json = nlohmann::json::parse(*text, nullptr, /*allow_exceptions=*/false);
  if (!json.is_object()) return std::nullopt;
  const auto version = json.find("version");  // not copied: it may be anything, of any depth
  if (version == json.end() || *version != kVersion) return std::nullopt;
  FormReport report;
  if (!read_numbers(json, "rounding_error", report.rounding_error) ||
      !read_numbers(json, "divergence", report.divergence))
    return std::nullopt;
  return report;
}

Status write_form_report(const std::filesystem::path& folder, const std::string& fingerprint,
                         const FormReport& report) {
  MEMDECAY_RETURN_IF_ERROR(make_folder(folder));
  const nlohmann::ordered_json json = {{"version", kVersion},
                                       {"forms", {"fp16", "int8", "k8v4", "int4"}},
                                       {"rounding_error", report.rounding_error},
                                       {"divergence", report.divergence}};
  return replace_file(report_path(folder, fingerprint), json.dump(1) + '\n');
}

}  // namespace memdecay
