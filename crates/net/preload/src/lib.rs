//! `libsaiga.so`.
