//! The text that is hashed and compressed: the same bytes everywhere, about as compressible as prose.

const WORDS: [&str; 32] = [
    "tare",
    "the",
    "weight",
    "of",
    "an",
    "empty",
    "vessel",
    "is",
    "taken",
    "from",
    "what",
    "scale",
    "shows",
    "and",
    "that",
    "which",
    "remains",
    "weighs",
    "as",
    "much",
    "goods",
    "alone",
    "so",
    "each",
    "measured",
    "twice",
    "by",
    "those",
    "who",
    "trade",
    "with",
    "strangers",
];

/// A number of bytes of words in an order that a linear congruential generator draws (D. Knuth's MMIX).
pub fn text(bytes: usize) -> Vec<u8> {
    let mut text = Vec::with_capacity(bytes + 16);
    let mut state = 1_u64;
    while text.len() < bytes {
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        text.extend_from_slice(WORDS[(state >> 59) as usize].as_bytes());
        text.push(if (state >> 55) & 15 == 0 { b'\n' } else { b' ' });
    }
    text.truncate(bytes);
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn it_is_words_and_always_the_same() {
        let some = text(200);
        assert_eq!(some, text(4096)[..200]);
        let words: Vec<&[u8]> = some.split(|&byte| byte == b' ' || byte == b'\n').collect();
        assert!(words.len() > 30);
        assert!(words[..words.len() - 1].iter().all(|word| WORDS.iter().any(|known| known.as_bytes() == *word)));
    }
}
