#include "engine/memory/form_report_file.h"

#include <algorithm>
#include <cerrno>
#include <cmath>
#include <cstring>
#include <fstream>
#include <iterator>
#include <nlohmann/json.hpp>
#include <random>

#include "core/text_hash.h"

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
  std::ifstream stream(report_path(folder, fingerprint), std::ios::binary);
  if (!stream) return std::nullopt;
  const std::string text{std::istreambuf_iterator<char>(stream), {}};
  const auto json = nlohmann::json::parse(text, nullptr, /*allow_exceptions=*/false);
  if (!json.is_object() || json.value("version", nlohmann::json()) != kVersion) return std::nullopt;
  FormReport report;
  if (!read_numbers(json, "rounding_error", report.rounding_error) ||
      !read_numbers(json, "divergence", report.divergence))
    return std::nullopt;
  return report;
}

Status write_form_report(const std::filesystem::path& folder, const std::string& fingerprint,
                         const FormReport& report) {
  std::error_code failure;
  std::filesystem::create_directories(folder, failure);
  const std::filesystem::path path = report_path(folder, fingerprint);
  // Two processes may measure at once: each has a file of its own until it is whole.
  const std::filesystem::path beside =
      path.string() + fmt::format(".{:08x}", std::random_device()());
  {
    const nlohmann::ordered_json json = {{"version", kVersion},
                                         {"forms", {"fp16", "int8", "k8v4", "int4"}},
                                         {"rounding_error", report.rounding_error},
                                         {"divergence", report.divergence}};
    std::ofstream stream(beside, std::ios::binary | std::ios::trunc);
    stream << json.dump(1) << '\n';
    stream.close();
    if (!stream) return make_status(StatusCode::kIoError, "{} cannot be written", beside.string());
  }
  std::filesystem::rename(beside, path, failure);
  if (!failure) return Status();
  std::error_code ignored;
  std::filesystem::remove(beside, ignored);
  return make_status(StatusCode::kIoError, "{} cannot be written: {}", path.string(),
                     failure.message());
}

}  // namespace memdecay
